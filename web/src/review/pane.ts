import { dirName, displayPath, nameOf } from "../core/paths";
import type { Conflict, Root } from "../net/protocol";
import { announce } from "../ui/announce";
import { h, icon, iconButton, keyName } from "../ui/dom";
import { bindDiffKeys } from "./keys";
import type { Diff } from "./diffs";
import { DiffView, type Layout } from "./diffview";

/** What the pane asks for. */
export interface ReviewActions {
  accept(diff: Diff): void;
  reject(diff: Diff): void;
  resolve(diff: Diff, take: "proposal" | "file"): void;
  policy(diff: Diff, at: HTMLElement): void;
  step(by: 1 | -1): void;
  /** The tab of the file that a proposal is about has unsaved changes. */
  isDirty(path: string): boolean;
  openFile(path: string): void;
}

const eolNames: Record<string, string> = { crlf: "CRLF", cr: "CR", mixed: "mixed line ends" };

/** Below this width, in CSS pixels, a diff is laid out unified. */
export const narrow = 760;

function toolButton(name: string, text: string, label: string, testid: string, onclick: () => void, keys: string): HTMLButtonElement {
  return h("button", { type: "button", class: "tool-button", "aria-label": label, title: `${label} (${keyName(keys)})`, testid, onclick }, icon(name), text);
}

/** The view of one proposal: what it is, its diff, and the answers to it. */
export class ReviewPane {
  /** The proposal on show. */
  diff: Diff | null = null;
  private view: DiffView | null = null;
  private readonly views = new Map<string, DiffView>();
  private wanted: Layout | null = null;
  /** The proposal on which the key that is down was pressed. */
  private pressedOn: Diff | null = null;
  private readonly title = h("h2", { testid: "diff-title" });
  private readonly asker = h("p", { class: "review-asker", testid: "diff-owner" });
  private readonly badges = h("span", { class: "badges", testid: "diff-badges" });
  private readonly position = h("span", { class: "review-position", testid: "diff-position" });
  private readonly steps: HTMLElement;
  private readonly hunks = h("span", { class: "hunk-summary", testid: "hunk-summary" });
  private readonly notice = h("div", { class: "review-notice", testid: "diff-notice", role: "status" });
  private readonly labels = h("div", { class: "diff-labels", "aria-hidden": "true" });
  private readonly body = h("div", { class: "diff-body" });
  private readonly acceptButton: HTMLButtonElement;
  private readonly rejectButton: HTMLButtonElement;
  private readonly keepButton: HTMLButtonElement;
  private readonly revertButton: HTMLButtonElement;
  private readonly layoutButton: HTMLButtonElement;
  private readonly foldButton: HTMLButtonElement;

  constructor(
    private readonly element: HTMLElement,
    private readonly actions: ReviewActions,
  ) {
    const on = (run: (diff: Diff) => void) => () => this.diff && run(this.diff);
    this.acceptButton = h("button", { type: "button", class: "button accept", testid: "accept", onclick: on(actions.accept) }, "Accept", h("kbd", { text: keyName("Mod-Enter") }));
    this.rejectButton = h("button", { type: "button", class: "button reject", testid: "reject", onclick: on(actions.reject) }, "Reject", h("kbd", { text: "Esc" }));
    const policy = h("button", { type: "button", class: "button plain", "aria-haspopup": "menu", testid: "policy", onclick: on((d) => actions.policy(d, policy)) }, "Always…");
    this.steps = h(
      "span",
      { class: "group", role: "group", "aria-label": "Proposals" },
      iconButton("up", "Previous proposal", "previous-diff", () => actions.step(-1), "Shift+F9"),
      this.position,
      iconButton("down", "Next proposal", "next-diff", () => actions.step(1), "F9"),
    );
    this.keepButton = toolButton("check", "Keep", "Keep this change", "keep-hunk", () => this.decideHunk("kept"), "Alt-Enter");
    this.revertButton = toolButton("undo", "Revert", "Revert this change", "revert-hunk", () => this.decideHunk("reverted"), "Alt-Backspace");
    this.foldButton = iconButton("fold", "Fold unchanged lines", "toggle-fold", () => this.view?.toggleCollapsed());
    this.layoutButton = iconButton("split", "Side by side", "toggle-layout", () => this.toggleLayout());
    const changes = h(
      "span",
      { class: "group", role: "group", "aria-label": "Changes" },
      iconButton("up", "Previous change", "previous-hunk", () => this.go(-1), "Shift+F8"),
      iconButton("down", "Next change", "next-hunk", () => this.go(1), "F8"),
      this.hunks,
      this.keepButton,
      this.revertButton,
    );
    element.append(
      h(
        "header",
        { class: "review-head" },
        h("div", { class: "review-what" }, h("div", { class: "review-title" }, this.title, this.badges), this.asker),
        h("div", { class: "review-answers" }, this.steps, policy, this.rejectButton, this.acceptButton),
      ),
      h("div", { class: "review-tools" }, changes, h("span", { class: "spacer" }), this.foldButton, this.layoutButton),
      this.notice,
      this.labels,
      this.body,
    );
    document.addEventListener("keydown", (e) => this.holdBack(e), true);
    bindDiffKeys(element, {
      next: () => this.go(1),
      previous: () => this.go(-1),
      keep: () => this.decideHunk("kept"),
      revert: () => this.decideHunk("reverted"),
      accept: on(actions.accept),
    });
    element.addEventListener("keydown", (e) => {
      if (e.key === "Escape" && !e.defaultPrevented && !e.isComposing && this.diff) {
        e.preventDefault();
        actions.reject(this.diff);
      }
    });
    new ResizeObserver(() => this.fit()).observe(element);
  }

  /** A key that is held down belongs to the proposal on which it was pressed: it neither answers nor edits the next one. */
  private holdBack(e: KeyboardEvent): void {
    if (!e.repeat) {
      this.pressedOn = this.diff;
    } else if (this.diff && this.pressedOn !== this.diff && e.target instanceof Node && this.element.contains(e.target)) {
      e.preventDefault();
      e.stopImmediatePropagation();
    }
  }

  /** Shows a proposal whose texts have been read. */
  show(diff: Diff, focus: boolean): void {
    const { texts } = diff;
    if (!texts) return;
    let view = this.views.get(diff.info.id);
    const fresh = !view;
    if (!view) {
      view = new DiffView(
        { path: texts.path, old: texts.old, text: texts.text, editable: !texts.readOnly, oldLabel: `On disk, read-only, ${texts.path}`, newLabel: `Proposal, ${texts.readOnly ? "read-only" : "editable"}, ${texts.path}` },
        this.layout(),
      );
      const made = view;
      this.views.set(diff.info.id, made);
      made.edited.on(() => diff.touch(made.length));
      made.moved.on(() => made === this.view && this.refresh());
      diff.current = () => made.text;
      if (texts.conflict) made.setConflict(texts.conflict.places);
    }
    this.diff = diff;
    this.view = view;
    view.setLayout(this.layout());
    this.body.replaceChildren(view.element);
    if (fresh) view.goToFirst();
    this.refresh();
    if (focus) view.focus();
  }

  /** Takes a proposal's view away for good. */
  forget(diff: Diff): void {
    const view = this.views.get(diff.info.id);
    if (!view) return;
    this.views.delete(diff.info.id);
    if (view === this.view) {
      this.view = this.diff = null;
      this.body.replaceChildren();
    }
    view.destroy();
  }

  /** Another page edited a proposal. */
  setText(diff: Diff, text: string): void {
    this.views.get(diff.info.id)?.setText(text);
  }

  /** The file of a proposal has changed. */
  setBase(diff: Diff): void {
    const view = this.views.get(diff.info.id);
    if (!view || !diff.texts) return;
    view.setOld(diff.texts.old);
    view.setConflict(diff.texts.conflict?.places ?? []);
  }

  /** Whether the user emptied a proposal that was not empty: the CLI would ignore that (SPEC F-8). */
  isEmptied(diff: Diff): boolean {
    const view = this.views.get(diff.info.id);
    return view ? view.length === 0 && diff.texts?.new !== "" : false;
  }

  /** Writes position among the waiting proposals: 1-based. */
  setPosition(at: number, of: number, roots: readonly Root[]): void {
    this.position.textContent = of > 1 ? `${at} of ${of}` : "";
    this.steps.hidden = of < 2;
    const path = this.diff?.info.path;
    if (path) this.title.replaceChildren(h("bdi", { text: nameOf(path) }), " ", h("span", { class: "dim", text: displayPath(dirName(path), roots) }));
  }

  /** Gives the diff the focus. */
  focus(): void {
    this.view?.focus();
  }

  /** Writes everything that follows from the state of the diff on show. */
  refresh(): void {
    const { diff, view } = this;
    if (!diff?.texts || !view) return;
    const { texts } = diff;
    const s = view.summary();
    this.asker.replaceChildren(h("strong", { text: diff.info.owner || "A CLI" }), ` proposes ${texts.isNew ? "a new file" : "this change"}`);
    this.asker.title = diff.info.title;
    this.badges.replaceChildren(...this.badgeTexts().map((text) => h("span", { class: "badge", text })));
    this.hunks.replaceChildren(
      h("span", { text: this.where() }),
      h("span", { class: "plus", role: "img", text: `+${s.added}`, "aria-label": `${s.added} lines added` }),
      h("span", { class: "minus", role: "img", text: `−${s.removed}`, "aria-label": `${s.removed} lines removed` }),
      s.kept > 0 ? h("span", { class: "kept-count", text: `${s.kept} kept` }) : "",
    );
    const used = [this.keepButton, this.revertButton].find((b) => b === document.activeElement);
    this.keepButton.disabled = this.revertButton.disabled = s.current < 0 || !!texts.readOnly;
    // A disabled button drops the focus, and with it the keys of this pane.
    if (used?.disabled) view.focus();
    const emptied = this.isEmptied(diff);
    this.acceptButton.disabled = emptied || diff.deciding || !!texts.conflict;
    this.rejectButton.disabled = diff.deciding;
    this.foldButton.setAttribute("aria-pressed", String(view.collapsed));
    this.layoutButton.setAttribute("aria-pressed", String(view.layout === "side"));
    this.labels.replaceChildren(...(view.layout === "side" ? [h("span", { text: texts.isNew ? "No file yet" : "On disk" }), h("span", { text: `Proposal · ${texts.readOnly ? "read-only" : "editable"}` })] : []));
    this.writeNotice(emptied, s.hunks);
  }

  /** Goes to another change and says which. */
  private go(step: 1 | -1): void {
    if (this.view?.go(step)) announce(this.where());
  }

  /** Decides the change at the cursor and says what that did. */
  private decideHunk(how: "kept" | "reverted"): void {
    const { view } = this;
    if (!view) return;
    const before = view.summary();
    if (!(how === "kept" ? view.keepHere() : view.revertHere())) return;
    const after = view.summary();
    const did = how === "reverted" ? "Reverted" : after.kept > before.kept ? "Kept" : "No longer kept";
    announce(`${did}. ${after.kept > 0 && after.kept === after.hunks ? `All ${after.hunks} changes are kept.` : this.where()}`);
  }

  private where(): string {
    const s = this.view?.summary();
    if (!s || s.hunks === 0) return "No change";
    if (s.current >= 0) return `Change ${s.current + 1} of ${s.hunks}`;
    return s.hunks === 1 ? "1 change" : `${s.hunks} changes`;
  }

  private badgeTexts(): string[] {
    const texts = this.diff?.texts;
    if (!texts || !this.view) return [];
    const { doc } = this.view.editor.state;
    const out: string[] = [];
    if (texts.isNew) out.push("new file");
    if (this.diff?.info.edited) out.push("edited");
    if (texts.eol && eolNames[texts.eol]) out.push(eolNames[texts.eol] ?? "");
    if (doc.length > 0 && doc.line(doc.lines).length > 0) out.push("no final newline");
    if (doc.length === 0 && texts.old !== "") out.push("empties the file");
    return out;
  }

  private writeNotice(emptied: boolean, hunks: number): void {
    const path = this.diff?.info.path ?? "";
    const lines: (Node | string)[] = [];
    if (emptied) {
      lines.push("You emptied this proposal. The CLI ignores an empty text and would write its own, so it cannot be accepted: reject it, or undo.");
    } else if (this.diff?.texts?.conflict) {
      lines.push(...this.conflictLines(this.diff, this.diff.texts.conflict));
    } else if (hunks === 0 && !this.diff?.texts?.isNew) {
      lines.push("The proposal is the same as the file on disk: accepting it changes nothing. Reject it to tell the CLI that you do not want the change.");
    }
    if (this.diff?.texts?.readOnly) lines.push(`${this.diff.texts.readOnly}. `);
    if (this.diff?.moved && !this.diff.texts?.conflict) lines.push("The file has changed since this was proposed; the proposal is shown on what it holds now. ");
    if (this.actions.isDirty(path)) {
      lines.push("This file has unsaved changes in its tab. They stay there when you accept. ");
      lines.push(h("button", { type: "button", class: "link", text: "Look at them", testid: "open-dirty", onclick: () => this.actions.openFile(path) }));
    }
    const key = lines.map((l) => (typeof l === "string" ? l : (l.textContent ?? ""))).join("");
    if (this.notice.dataset.key === key) return;
    this.notice.dataset.key = key;
    this.notice.replaceChildren(...lines);
  }

  /** What stands against the proposal, and the two ways out. */
  private conflictLines(diff: Diff, conflict: Conflict): (Node | string)[] {
    const button = (text: string, take: "proposal" | "file") =>
      h("button", { type: "button", class: "link", text, testid: `take-${take}`, onclick: () => this.actions.resolve(diff, take) });
    const lines: (Node | string)[] = [`Conflict: ${conflict.reason}. `, button("Keep the proposal", "proposal")];
    if (conflict.places.length > 0) lines.push(" or ", button("take the file's lines", "file"));
    return [...lines, " before you accept."];
  }

  private layout(): Layout {
    return this.wanted ?? (this.element.clientWidth > 0 && this.element.clientWidth < narrow ? "unified" : "side");
  }

  private toggleLayout(): void {
    this.wanted = this.view?.layout === "side" ? "unified" : "side";
    this.view?.setLayout(this.wanted);
    this.refresh();
  }

  private fit(): void {
    if (!this.view || this.element.clientWidth === 0) return;
    this.view.setLayout(this.layout());
  }
}
