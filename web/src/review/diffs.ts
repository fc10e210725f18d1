import { withEnds } from "../core/ends";
import { Signal } from "../core/signal";
import { browserClock, debounce, throttle, type Throttled } from "../core/throttle";
import type { Connection } from "../net/connection";
import { Code, RpcError, type DiffInfo, type DiffTexts } from "../net/protocol";

/** From this length on, in UTF-16 units, sending a text can be felt. */
const longText = 500_000;

/** One open proposal as this page knows it. */
export class Diff {
  /** The texts, once read. */
  texts: DiffTexts | null = null;
  /** The proposal as it stands here; null until read. Functions, because a long text is costly to take out of an editor. */
  current: (() => string) | null = null;
  /** Edits of this page's user that the companion has not been sent. */
  unsent = false;
  /** How many edits the companion has been sent. */
  sent = 0;
  /** The latest edit that this page knows of was made on it. */
  mine = false;
  /** An edit of another page's that overtook the texts. */
  overtaking: { text: string; version: number } | null = null;
  /** Its file changed before the texts were here. */
  outdated = false;
  /** The file has changed since the proposal came up here. */
  moved = false;
  /** An answer was given here and waits for the companion. */
  deciding = false;
  private sender: Throttled | null = null;

  constructor(
    public info: DiffInfo,
    private readonly send: (diff: Diff) => void,
  ) {}

  /** Whether the text differs from what the CLI proposed. */
  get edited(): boolean {
    return this.texts && this.current ? this.unsent || this.info.edited || this.current() !== this.texts.new : this.info.edited;
  }

  /**
   * Whether a text that came from the companion lacks what was typed here, or is older than what is shown. A newer one
   * follows then, as soon as the companion has the last edit.
   */
  lacks(version: number, edit: number | undefined): boolean {
    return this.unsent || (edit ?? this.sent) !== this.sent || version < (this.texts?.version ?? 0);
  }

  /** Notes an edit; it is sent soon, a long text when its user pauses: that takes the page's time. */
  touch(length: number): void {
    this.unsent = this.mine = true;
    this.info.edited = true;
    const send = () => this.send(this);
    this.sender ??= length > longText ? debounce(send, 1000, browserClock, 10_000) : throttle(send, 200);
    this.sender();
  }

  /** Forgets what waits to be sent. */
  cancel(): void {
    this.sender?.cancel();
  }
}

/** How a proposal left the queue. */
export interface Closing {
  diff: Diff;
  outcome: string;
  /** Decided on this page. */
  here: boolean;
  /** The text as it stood here, when the last edits of it never reached the companion; null otherwise. */
  lost: string | null;
}

/** The open proposals, oldest first, kept in step with the companion and with other pages. */
export class Diffs {
  /** A proposal came. */
  readonly opened = new Signal<Diff>();
  /** A proposal has its outcome. */
  readonly closed = new Signal<Closing>();
  /** The list or one of its lines changed. */
  readonly changed = new Signal();
  /** The file of a proposal changed, or a conflict with it came or went. */
  readonly baseArrived = new Signal<Diff>();
  /** Another page edited a proposal. */
  readonly textArrived = new Signal<{ diff: Diff; text: string }>();
  private readonly diffs = new Map<string, Diff>();

  constructor(
    private readonly connection: Connection,
    private readonly clientId: string,
  ) {
    connection.on("diff/opened", ({ diff }) => this.add(diff));
    connection.on("diff/closed", ({ id, outcome }) => this.remove(id, outcome));
    connection.on("diff/text", ({ id, text, version, edit, clientId: from }) => {
      const diff = this.diffs.get(id);
      if (!diff || from === this.clientId || diff.lacks(version, edit)) return;
      diff.mine = false;
      diff.info.edited = true;
      if (diff.texts) diff.texts.version = version;
      else diff.overtaking = { text, version };
      this.textArrived.emit({ diff, text });
      this.changed.emit();
    });
    connection.on("diff/base", ({ id, isNew, old, text, version, edit, base, conflict, others }) => {
      const diff = this.diffs.get(id);
      if (!diff) return;
      diff.info.isNew = isNew;
      if (!diff.texts) {
        diff.outdated = true;
        return;
      }
      if (base < diff.texts.base) return;
      const moved = diff.texts.base !== base;
      Object.assign(diff.texts, { isNew, old, base, conflict, others });
      // Edits that wait here, or are on their way, are merged when they arrive there, and come back.
      if (!diff.lacks(version, edit)) {
        diff.texts.version = version;
        this.textArrived.emit({ diff, text });
      }
      diff.moved ||= moved;
      this.baseArrived.emit(diff);
      this.changed.emit();
    });
  }

  /** The open proposals, oldest first. */
  get list(): Diff[] {
    return [...this.diffs.values()];
  }

  /**
   * Compares with what the companion says is open: after a greeting. Edits made while offline are sent; so are all of
   * this page's to a companion that was `restarted`, which may have lost the last of them. Otherwise the companion
   * knows better.
   */
  sync(infos: DiffInfo[], restarted: boolean): void {
    const open = new Set(infos.map((i) => i.id));
    for (const id of [...this.diffs.keys()]) if (!open.has(id)) this.remove(id, "decided elsewhere");
    for (const info of infos) {
      const known = this.diffs.get(info.id);
      if (known) known.sent = 0; // to this connection
      if (restarted && known?.texts) known.texts.version = 0; // the companion counts anew
      if (!known) {
        this.add(info);
      } else if (known.unsent || (restarted && known.mine)) {
        this.send(known);
        void this.reread(known);
      } else if (known.texts) {
        void this.reread(known);
      }
    }
  }

  /** The edits of a proposal that have not been sent yet: the companion asks before a decision in the terminal. */
  flush(id: string): { text: string | null; version: number; edit: number } {
    const diff = this.diffs.get(id);
    const version = diff?.texts?.version ?? 0;
    if (!diff?.unsent || !diff.current) return { text: null, version, edit: diff?.sent ?? 0 };
    diff.cancel();
    diff.unsent = false;
    return { text: diff.current(), version, edit: ++diff.sent };
  }

  /** Sends every edit that waits: the page may be about to go. */
  sendAll(): void {
    for (const diff of this.list) {
      if (!diff.unsent) continue;
      diff.cancel();
      this.send(diff);
    }
  }

  /** Reads a proposal's texts, once. */
  async read(diff: Diff): Promise<DiffTexts> {
    if (diff.texts) return diff.texts;
    let texts = await this.request(diff);
    if (diff.outdated) {
      diff.outdated = false;
      texts = await this.request(diff);
    }
    if (diff.overtaking && diff.overtaking.version > texts.version) Object.assign(texts, diff.overtaking);
    return (diff.texts ??= texts);
  }

  private async request(diff: Diff): Promise<DiffTexts> {
    const { newEnds, textEnds, ...texts } = await this.connection.request("diff/read", { id: diff.info.id, short: true });
    texts.new = withEnds(texts.old, texts.new, newEnds);
    texts.text = withEnds(texts.new, texts.text, textEnds);
    return texts;
  }

  /** Whether another page has unsaved changes of the file now. */
  async dirtyElsewhere(diff: Diff): Promise<boolean> {
    const { dirtyElsewhere } = await this.connection.request("diff/read", { id: diff.info.id, brief: true });
    return dirtyElsewhere ?? false;
  }

  private async reread(diff: Diff): Promise<void> {
    try {
      const texts = await this.request(diff);
      if (!diff.texts) return;
      const whole = !diff.lacks(texts.version, texts.edit);
      diff.moved ||= diff.texts.base !== texts.base;
      Object.assign(diff.texts, { ...texts, text: diff.texts.text, version: whole ? texts.version : diff.texts.version, conflict: texts.conflict });
      if (whole) this.textArrived.emit({ diff, text: texts.text });
      this.baseArrived.emit(diff);
    } catch {
      // Settled or offline meanwhile: either is told by its own way.
    }
  }

  /** Settles a proposal with the text as it stands here. Resolves when the companion has agreed. */
  async accept(diff: Diff): Promise<void> {
    await this.decide(diff, async () => {
      const { version, base, text: read } = await this.read(diff);
      const text = diff.current ? diff.current() : read;
      await this.connection.request("diff/accept", { id: diff.info.id, text, version, base });
      this.remove(diff.info.id, "accepted");
    });
  }

  /** Ends a conflict: with the proposal as it stands here, or with the file's lines in its place. */
  async resolve(diff: Diff, take: "proposal" | "file"): Promise<void> {
    const { texts } = diff;
    if (!texts || !diff.current) return;
    diff.cancel();
    diff.unsent = false;
    await this.connection.request("diff/resolve", { id: diff.info.id, text: diff.current(), version: texts.version, base: texts.base, edit: ++diff.sent, take });
  }

  /** Settles a proposal without content. */
  async reject(diff: Diff): Promise<void> {
    await this.decide(diff, async () => {
      await this.connection.request("diff/reject", { id: diff.info.id });
      this.remove(diff.info.id, "rejected");
    });
  }

  private async decide(diff: Diff, run: () => Promise<void>): Promise<void> {
    if (diff.deciding) return;
    diff.deciding = true;
    this.changed.emit();
    try {
      await run();
    } catch (e) {
      diff.deciding = false;
      if (e instanceof RpcError && e.code === Code.settled) this.remove(diff.info.id, "decided elsewhere");
      else throw e;
    } finally {
      this.changed.emit();
    }
  }

  private add(info: DiffInfo): void {
    if (this.diffs.has(info.id)) return;
    const diff = new Diff(info, (d) => this.send(d));
    this.diffs.set(info.id, diff);
    this.changed.emit();
    this.opened.emit(diff);
  }

  private remove(id: string, outcome: string): void {
    const diff = this.diffs.get(id);
    if (!diff) return;
    const lost = diff.unsent && !diff.deciding && diff.current ? diff.current() : null;
    diff.cancel();
    this.diffs.delete(id);
    this.changed.emit();
    this.closed.emit({ diff, outcome, here: diff.deciding, lost });
  }

  private send(diff: Diff): void {
    if (!diff.current || diff.deciding || !this.diffs.has(diff.info.id)) return;
    const { clientId } = this;
    const sent = this.connection.notify("diff/edit", { id: diff.info.id, text: diff.current(), version: diff.texts?.version ?? 0, edit: diff.sent + 1, clientId });
    if (!sent) return;
    diff.unsent = false;
    diff.sent++;
  }
}
