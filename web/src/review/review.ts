import { nameOf } from "../core/paths";
import { Signal } from "../core/signal";
import { messageOf, type Root } from "../net/protocol";
import { announce, note } from "../ui/announce";
import { choose, confirm, modalIsOpen } from "../ui/dialogs";
import type { Closing, Diff, Diffs } from "./diffs";
import type { ReviewPane } from "./pane";

/** What the review needs from the rest of the page. */
export interface ReviewHost {
  /** Whether the review is on show. */
  visible(): boolean;
  /** Puts the review on show, or what was there before it. */
  setVisible(visible: boolean, focus: boolean): void;
  /** Milliseconds since the user last typed. */
  idle(): number;
  isDirty(path: string): boolean;
  roots(): readonly Root[];
}

/** A diff does not take the screen from somebody who typed within this time, in milliseconds. */
const busyTime = 2000;

/** A proposal that follows one for the same file within this time, in milliseconds, replaces it (SPEC F-7). */
const replaceTime = 1000;

const endings: Record<string, string> = { accepted: "was accepted", rejected: "was rejected", withdrawn: "was answered in the terminal or taken back" };

/** Leads the user through the waiting proposals: which is on show, what comes next, what is asked before an answer. */
export class Review {
  /** Another proposal is on show, or none. */
  readonly changed = new Signal();
  private current: Diff | null = null;
  /** The texts of `current` are on their way. */
  private loading = false;
  /** When the user last answered a proposal: what they typed before belongs to that. */
  private decidedAt = -Infinity;

  /** The proposal that was taken off the screen last by its CLI: a new one for the same file takes its place. */
  private taken = { path: "", at: -Infinity };

  constructor(
    private readonly diffs: Diffs,
    private readonly pane: ReviewPane,
    private readonly host: ReviewHost,
  ) {
    diffs.opened.on((diff) => this.arrived(diff));
    diffs.closed.on((closing) => this.left(closing));
    diffs.textArrived.on(({ diff, text }) => this.pane.setText(diff, text));
    diffs.baseArrived.on((diff) => {
      this.pane.setBase(diff);
      if (diff === this.current) announce(diff.texts?.conflict ? `Conflict: ${diff.texts.conflict.reason}` : "The file has changed on disk; the proposal is shown on what it holds now", true);
    });
    diffs.changed.on(() => this.refresh());
  }

  /** The proposal on show. */
  get shown(): Diff | null {
    return this.current;
  }

  /** Shows a proposal; the first one when none is given. */
  async show(diff: Diff | null | undefined = this.current ?? this.diffs.list[0], focus = true): Promise<void> {
    if (!diff) return;
    this.current = diff;
    this.loading = true;
    try {
      await this.diffs.read(diff);
    } catch (e) {
      if (this.current === diff) note(messageOf(e), { kind: "problem" });
      return;
    } finally {
      if (this.current === diff) this.loading = false;
    }
    if (this.current !== diff || !this.diffs.list.includes(diff)) return;
    this.host.setVisible(true, false);
    this.pane.show(diff, focus);
    this.refresh();
    this.changed.emit();
  }

  /** Shows the next or previous proposal, around the ends. */
  async step(by: 1 | -1): Promise<void> {
    const { list } = this.diffs;
    const at = this.current && this.host.visible() ? list.indexOf(this.current) + by : 0;
    await this.show(list[(at + list.length) % list.length]);
  }

  /** Draws position and state again. */
  refresh(): void {
    const { list } = this.diffs;
    if (this.current) this.pane.setPosition(list.indexOf(this.current) + 1, list.length, this.host.roots());
    this.pane.refresh();
  }

  private arrived(diff: Diff): void {
    const { owner, path } = diff.info;
    const text = `${owner || "A CLI"} proposes a change to ${nameOf(path)}`;
    if (this.current && (this.loading || this.host.visible())) {
      announce(`${text}. ${this.diffs.list.length} proposals wait.`);
    } else if (path === this.taken.path && performance.now() - this.taken.at < replaceTime && !modalIsOpen()) {
      announce(`${text}, in place of the one before`, true);
      void this.show(diff);
    } else if (this.busy() || modalIsOpen()) {
      note(`${text}.`, { kind: "proposal", action: "Show (F9)", onAction: () => void this.show(diff), sticky: true });
    } else {
      announce(text, true);
      void this.show(diff, !modalIsOpen());
    }
  }

  private busy(): boolean {
    return this.host.idle() < Math.min(busyTime, performance.now() - this.decidedAt);
  }

  private left({ diff, outcome, here, lost }: Closing): void {
    const name = nameOf(diff.info.path);
    const was = this.current === diff;
    const visible = this.host.visible();
    const edited = !here && outcome !== "accepted" && diff.edited;
    this.pane.forget(diff);
    document.querySelectorAll(".note-proposal").forEach((n) => this.diffs.list.length === 0 && n.remove());
    if (here) this.decidedAt = performance.now();
    const how = endings[outcome] ?? "was decided elsewhere";
    if (here) announce(`${name}: ${outcome}`);
    else if (lost !== null) {
      const copy = () => void navigator.clipboard.writeText(lost).then(() => announce("Text copied"), () => note("The browser does not let this page copy.", { kind: "problem" }));
      note(`The proposal for ${name} ${how}, without your last edits: the companion could not be told of them.`, { kind: "problem", action: "Copy your text", onAction: copy, sticky: true });
    } else if (was || diff.texts) {
      note(`The proposal for ${name} ${how}.${edited ? " Your edits of it are in the history." : ""}`);
    }
    if (!was) return;
    if (visible && outcome === "withdrawn") this.taken = { path: diff.info.path, at: performance.now() };
    this.current = null;
    this.loading = false;
    const next = this.diffs.list[0];
    if (next && visible) void this.show(next);
    else if (visible) this.host.setVisible(false, true);
    this.changed.emit();
  }

  /** Accepts, once the user knows what that means for unsaved changes. */
  async accept(diff: Diff): Promise<void> {
    if (diff.deciding) return;
    if (this.pane.isEmptied(diff)) {
      announce("An emptied proposal cannot be accepted. Reject it, or undo.", true);
      return;
    }
    if (diff.texts?.conflict) {
      note("The file has changed where the proposal changes it. Keep the proposal or take the file's lines first.", { kind: "problem" });
      return;
    }
    try {
      const { version, base } = await this.diffs.read(diff);
      const { path } = diff.info;
      if (this.host.isDirty(path) || (await this.diffs.dirtyElsewhere(diff))) {
        const answer = await choose(
          `${nameOf(path)} has unsaved changes`,
          "The CLI will write the accepted text to disk. Your unsaved changes stay in their tab, where you can compare them with it and keep either.",
          [
            { value: "accept", label: "Accept the proposal", kind: "primary" },
            { value: "back", label: "Not yet" },
          ],
          "dirty-dialog",
        );
        if (answer !== "accept") return;
      }
      // What came during the question was not what it was about.
      if (diff.texts?.version !== version || diff.texts.base !== base || diff.texts.conflict) throw new Error("The proposal has changed meanwhile: look at it again before you accept it.");
      await this.diffs.accept(diff);
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }

  /** Ends a conflict with the proposal's text or the file's. */
  async resolve(diff: Diff, take: "proposal" | "file"): Promise<void> {
    try {
      await this.diffs.resolve(diff, take);
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }

  /** Rejects; asks first when the user's own edits would go with it. */
  async reject(diff: Diff): Promise<void> {
    if (diff.deciding) return;
    if (diff.edited && !this.pane.isEmptied(diff)) {
      const sure = await confirm("Reject with your edits?", `You edited the proposal for ${nameOf(diff.info.path)}. Rejecting it throws your edits away as well.`, "Reject");
      if (!sure) return;
    }
    try {
      await this.diffs.reject(diff);
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }
}
