import { Text, Transaction, type EditorState, type TransactionSpec } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { minimalChanges } from "../core/changes";
import { dirName, nameOf } from "../core/paths";
import { Signal } from "../core/signal";
import type { Connection } from "../net/connection";
import { Code, RpcError, type EOL, type FileContent } from "../net/protocol";

/** Why the text here and the file on disk disagree, and what stands on disk (null: nothing that could be read). */
export interface Conflict {
  disk: FileContent | null;
  /** Why what stands there cannot be read; absent when nothing does. */
  why?: string;
}

/** One open file: its buffer, what is known of the disk, and the view while it is shown. */
export class Doc {
  version = "";
  eol: EOL = "lf";
  bom = false;
  finalNewline = true;
  readOnly = false;
  saved: Text = Text.empty;
  conflict: Conflict | null = null;
  saving = false;
  /** The disk changed while a save was under way: whether by it or not is known afterwards. */
  recheck = false;
  /** The view that shows it now; it then owns the state. */
  view: EditorView | null = null;
  /** The look at the disk that was begun last; looks take turns, so that an older answer never overtakes a newer one. */
  look: Promise<void> = Promise.resolve();
  /** Where it was scrolled to when it was last shown, in pixels. */
  scrollTop = 0;

  constructor(
    public path: string,
    public state: EditorState,
  ) {}

  /** The file's name without its folder. */
  get name(): string {
    return nameOf(this.path);
  }

  /** Whether there is something that the disk does not have. */
  get dirty(): boolean {
    return !this.state.doc.eq(this.saved);
  }

  /** Runs a transaction, in the view or, while hidden, on the state alone. */
  dispatch(spec: TransactionSpec): void {
    if (this.view) this.view.dispatch(spec);
    else this.state = this.state.update(spec).state;
  }

  /** Makes the buffer hold `content` by minimal changes; `undoable` when the user may want the way back. */
  setText(content: string, undoable: boolean): void {
    const changes = minimalChanges(this.state.doc.toString(), content);
    if (changes.length === 0) return;
    this.dispatch({ changes, annotations: [Transaction.addToHistory.of(undoable), Transaction.remote.of(true)] });
  }
}

/** What was kept of an unsaved buffer across a reload. */
export interface Draft {
  path: string;
  text: string;
  version: string;
}

/**
 * The open files. It reads, saves and refreshes them, and knows of conflicts; what a buffer holds is lost only by
 * `close` and `takeDisk`, which their callers ask the user about.
 */
export class Documents {
  /** A document came, went, became dirty or clean, or its conflict changed. */
  readonly changed = new Signal<Doc | null>();
  private readonly docs = new Map<string, Doc>();
  private readonly opening = new Map<string, Promise<Doc>>();

  constructor(
    private readonly connection: Connection,
    private readonly makeState: (path: string, text: string, readOnly: boolean) => EditorState,
  ) {}

  /** The open documents in the order in which they were opened. */
  get list(): Doc[] {
    return [...this.docs.values()];
  }

  /** The open document of a path. */
  get(path: string): Doc | undefined {
    return this.docs.get(path);
  }

  /** Opens a file, or finds it open. A draft, when given, is laid over what the disk has. */
  open(path: string, draft?: Draft): Promise<Doc> {
    const known = this.docs.get(path);
    if (known) return Promise.resolve(known);
    let promise = this.opening.get(path);
    if (!promise) {
      promise = this.load(path, draft).finally(() => this.opening.delete(path));
      this.opening.set(path, promise);
    }
    return promise;
  }

  private async load(path: string, draft?: Draft): Promise<Doc> {
    let file: FileContent | null = null;
    try {
      file = await this.connection.request("file/read", { path });
    } catch (e) {
      // Whatever has become of the file, what was unsaved in it is brought back.
      if (!draft || !(e instanceof RpcError) || e.code === Code.offline) throw e;
    }
    const doc = new Doc(path, this.makeState(path, file?.content ?? "", file?.readOnly ?? false));
    if (file) this.adopt(doc, file, doc.state.doc);
    if (draft) {
      doc.setText(draft.text, true);
      if (doc.dirty && (!file || file.version !== draft.version)) doc.conflict = { disk: file };
    }
    this.docs.set(path, doc);
    this.changed.emit(doc);
    return doc;
  }

  /** Forgets a document and whatever its buffer holds. */
  close(doc: Doc): void {
    this.docs.delete(doc.path);
    this.changed.emit(null);
  }

  /** Writes a buffer to disk; with `force` over whatever is there. Returns false when the disk has changed, with the conflict recorded. */
  async save(doc: Doc, force = false): Promise<boolean> {
    const text = doc.state.doc;
    doc.saving = true;
    try {
      const params = { path: doc.path, content: text.toString(), baseVersion: doc.version };
      const { version } = await (force ? this.saveAnyhow({ ...params, force }) : this.connection.request("file/save", params));
      doc.version = version;
      doc.saved = text;
      doc.conflict = null;
      return true;
    } catch (e) {
      if (force || !(e instanceof RpcError) || (e.code !== Code.changedOnDisk && e.code !== Code.notFound)) throw e;
      await this.refresh(doc, true);
      if (!doc.conflict) return !doc.dirty;
      return false;
    } finally {
      doc.saving = false;
      this.changed.emit(doc);
      if (doc.recheck) {
        doc.recheck = false;
        void this.refresh(doc).catch(() => undefined);
      }
    }
  }

  /** Writes whatever stands there, and makes the folder anew if that has gone as well. */
  private async saveAnyhow(params: { path: string; content: string; baseVersion: string; force: boolean }): Promise<{ version: string }> {
    try {
      return await this.connection.request("file/save", params);
    } catch (e) {
      if (!(e instanceof RpcError) || e.code !== Code.notFound) throw e;
      await this.connection.request("file/create", { path: dirName(params.path), dir: true });
      return this.connection.request("file/save", params);
    }
  }

  /** Looks at the disk again: a clean buffer follows it, a dirty one gets a conflict. */
  refresh(doc: Doc, always = false): Promise<void> {
    const look = doc.look.catch(() => undefined).then(() => this.lookAt(doc, always));
    doc.look = look;
    return look;
  }

  private async lookAt(doc: Doc, always: boolean): Promise<void> {
    let file: FileContent | null = null;
    let why: string | undefined;
    try {
      file = await this.connection.request("file/read", { path: doc.path });
    } catch (e) {
      if (!(e instanceof RpcError) || e.code === Code.offline) throw e;
      if (e.code !== Code.notFound) why = e.message;
    }
    if (this.docs.get(doc.path) !== doc) return;
    if (file && file.version === doc.version && !always && !doc.conflict) return;
    if (!file) {
      doc.conflict = why === undefined ? { disk: null } : { disk: null, why };
    } else if (!doc.dirty || doc.state.doc.toString() === file.content) {
      doc.setText(file.content, false);
      this.adopt(doc, file, doc.state.doc);
    } else if (file.content === doc.saved.toString()) {
      this.adopt(doc, file, doc.saved);
    } else {
      doc.conflict = { disk: file };
    }
    this.changed.emit(doc);
  }

  /** The companion says that a file changed; `null` for gone. What this page wrote itself is no news. */
  async fileChanged(path: string, version: string | null): Promise<void> {
    const doc = this.docs.get(path);
    if (!doc || (version !== null && version === doc.version && !doc.conflict)) return;
    if (doc.saving) doc.recheck = true;
    else await this.refresh(doc);
  }

  /** Ends a conflict for the buffer: the next save goes over what is on disk now. */
  keepMine(doc: Doc): void {
    const disk = doc.conflict?.disk;
    if (disk) {
      doc.version = disk.version;
      doc.saved = Text.of(disk.content.split("\n"));
    }
    doc.conflict = null;
    this.changed.emit(doc);
  }

  /** Ends a conflict for the disk; the buffer's text stays in the undo history. */
  takeDisk(doc: Doc): void {
    const disk = doc.conflict?.disk;
    if (!disk) return;
    doc.setText(disk.content, true);
    this.adopt(doc, disk, doc.state.doc);
    this.changed.emit(doc);
  }

  /** A file or folder has a new name: what is open below it moves along. Returns the new paths by the old; the caller draws. */
  renamed(from: string, to: string, sep: string): Map<string, string> {
    const moved = new Map<string, string>();
    for (const doc of this.list) {
      if (doc.path !== from && !doc.path.startsWith(from + sep)) continue;
      const path = to + doc.path.slice(from.length);
      moved.set(doc.path, path);
    }
    const all = this.list;
    this.docs.clear();
    for (const doc of all) {
      doc.path = moved.get(doc.path) ?? doc.path;
      this.docs.set(doc.path, doc);
    }
    return moved;
  }

  private adopt(doc: Doc, file: FileContent, saved: Text): void {
    doc.version = file.version;
    doc.eol = file.eol;
    doc.bom = file.bom;
    doc.finalNewline = file.finalNewline;
    doc.readOnly = file.readOnly;
    doc.saved = saved;
    doc.conflict = null;
  }
}
