// Proposals: one on show as a diff, the others in a queue (SPEC F-13 for what changes meanwhile).
import * as path from "node:path";
import * as vscode from "vscode";
import { type Params, RpcError } from "./rpc";
import { change, encode, restore, same, unfit } from "./text";

export const scheme = "pollux";

/** The way to the companion of the moment. */
export interface Companion {
  notify(method: string, params: unknown): void;
  call(method: string, params: unknown): Promise<any>;
}

interface Place {
  start: number;
  end: number;
  text: string;
}

interface Conflict {
  reason: string;
  places: Place[];
}

interface Proposal {
  readonly id: string;
  readonly path: string;
  readonly title: string;
  readonly proposed: string;
  /** Why the agent takes no edits of it, empty when it does. */
  readonly fixed: string;
  readonly left: vscode.Uri;
  readonly right: vscode.Uri;
  old: string;
  /** What the document was filled with, or what somebody else has made of it since. */
  text: string;
  /** What pollux has told last. */
  shown: string;
  /** What pollux has heard last. */
  told: string;
  /** The version of shown, and of old, as pollux counts them. */
  version: number;
  base: number;
  /** The number of the last edit that pollux has heard of. */
  edits: number;
  conflict: Conflict | null;
  deciding: boolean;
  /** Settles when pollux has answered the decision. */
  answer: Promise<unknown>;
  /** Its document is being changed to what pollux has told. */
  updating: Promise<void>;
  busy: boolean;
  opened: boolean;
  timer?: NodeJS.Timeout;
}

const idle = 1000; // milliseconds without a key before a diff comes

export class Diffs implements vscode.Disposable {
  /** In the order in which they came. */
  private queue: Proposal[] = [];
  /** Rejections that no companion has answered, as announce() tells them. */
  private readonly unheard = new Map<string, { content: string }>();
  private companion: Companion | undefined;
  private readonly files = new Files();
  private readonly changed = new vscode.EventEmitter<void>();
  /** The queue, or what is on show, has changed. */
  readonly onDidChange = this.changed.event;
  private readonly disposables: vscode.Disposable[];
  private readonly beside = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("merge.currentContentBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.warningForeground"),
  });
  private typed = 0;
  private showing = 0;
  private pumping: NodeJS.Timeout | undefined;

  constructor() {
    this.disposables = [
      this.changed,
      this.beside,
      vscode.workspace.registerFileSystemProvider(scheme, this.files, { isCaseSensitive: true }),
      vscode.workspace.onDidChangeTextDocument((e) => this.edited(e.document)),
      vscode.workspace.onWillSaveTextDocument((e) => this.saving(e)),
      vscode.window.tabGroups.onDidChangeTabs(() => this.closed()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.queue.forEach((p) => this.mark(p))),
      vscode.window.onDidChangeTextEditorSelection((e) => {
        if (e.kind === vscode.TextEditorSelectionChangeKind.Keyboard) this.typed = Date.now();
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.pumping);
    for (const p of this.queue) clearTimeout(p.timer);
    for (const d of this.disposables) d.dispose();
  }

  get waiting(): number {
    return this.queue.length;
  }

  /** The place in the queue, from 1, of the proposal that the user sees, else of the next one. */
  get place(): number {
    return this.queue.indexOf(this.seen() ?? this.following()!) + 1;
  }

  /** The views as a companion that has come back wants to hear of them, with what the one before has not heard. It counts their versions anew. */
  announce(): unknown[] {
    const views = this.queue.map((p) => {
      const view = this.view(p);
      Object.assign(p, { version: 1, base: 0, edits: 0, deciding: false, told: view.content });
      return view;
    });
    return [...this.unheard.values(), ...views];
  }

  /** Whether there is anything to announce. */
  get kept(): boolean {
    return this.queue.length + this.unheard.size > 0;
  }

  connect(companion: Companion | undefined): void {
    this.companion = companion;
    for (const p of this.queue) p.deciding &&= companion !== undefined;
  }

  /** Tells every edit that nobody has heard of yet, before the companion ends. */
  flush(): void {
    for (const p of this.queue) this.report(p);
  }

  /** pollux/openDiff */
  async open(q: Params): Promise<unknown> {
    const problem = unfit(q.oldText ?? "") ?? unfit(q.newText ?? "");
    if (problem) throw new RpcError(problem.code, problem.message);
    const known = this.find(q.diffId);
    if (known) await this.finish(known);
    const id = String(q.diffId);
    const name = path.posix.basename(vscode.Uri.file(q.filePath).path);
    const text: string = q.newText ?? "";
    const p: Proposal = {
      id,
      path: q.filePath,
      title: q.title || name,
      proposed: text,
      fixed: q.readOnly ?? "",
      left: vscode.Uri.from({ scheme, path: `/before/${id}/${name}` }),
      right: vscode.Uri.from({ scheme, path: `/proposal/${id}/${name}` }),
      old: q.oldText ?? "",
      text,
      shown: text,
      told: text,
      version: q.version ?? 0,
      base: q.baseVersion ?? 0,
      edits: 0,
      conflict: q.conflict ?? null,
      deciding: false,
      answer: Promise.resolve(),
      updating: Promise.resolve(),
      busy: false,
      opened: false,
    };
    this.files.put(p.left, p.old, true);
    this.files.put(p.right, p.text, p.fixed !== "");
    this.queue.push(p);
    const file = vscode.workspace.textDocuments.find((d) => d.uri.scheme === "file" && d.uri.fsPath === p.path);
    this.pump();
    this.changed.fire();
    return { opened: true, bufferModified: file?.isDirty ?? false };
  }

  /** pollux/closeDiff */
  close(q: Params): unknown {
    const rejected = this.unheard.get(q.diffId);
    if (rejected) {
      this.unheard.delete(q.diffId);
      return { content: rejected.content };
    }
    const p = this.find(q.diffId);
    if (!p) throw new RpcError(-32602, `no diff ${q.diffId}`);
    const content = this.content(p);
    void this.finish(p);
    return { content, version: p.version };
  }

  /** pollux/didChangeBase: the file has changed, and the proposal with it. */
  rebase(q: Params): void {
    this.follow(q, (p) => {
      p.base = q.baseVersion;
      if (p.old !== q.oldText) vscode.window.setStatusBarMessage(`${path.basename(p.path)}: the file has changed; the proposal is shown on what it holds now`, 8000);
      p.old = q.oldText;
      this.files.put(p.left, p.old, true);
    });
  }

  /** pollux/didChangeProposal: somebody has edited it in another view. */
  follow(q: Params, then?: (p: Proposal) => void): void {
    const p = this.find(q.diffId);
    if (!p) return;
    p.updating = p.updating.then(async () => {
      // An update that was sent before the user's last edit was heard of would overwrite it. What is merged with it comes next.
      if (this.find(p.id) !== p || this.report(p) || (q.edit ?? p.edits) < p.edits) return;
      p.busy = true;
      const done = await this.put(p, q.content);
      p.busy = false;
      if (!done) {
        this.report(p); // the user typed meanwhile
        return;
      }
      const before = JSON.stringify(p.conflict);
      Object.assign(p, { version: q.version, text: q.content, shown: q.content, told: q.content, conflict: q.conflict ?? null });
      then?.(p);
      this.mark(p);
      if (p.conflict && JSON.stringify(p.conflict) !== before) this.clash(p, p.conflict);
    });
  }

  /** Accepts the proposal that the user sees, with its text as it is now. */
  async accept(p = this.seen()): Promise<void> {
    if (!p) return this.next(); // nothing is accepted unseen
    const content = this.content(p);
    if (content === "" && p.proposed !== "") {
      void vscode.window.showErrorMessage("An emptied proposal cannot be accepted: the agent would write its own text. Reject it instead.");
      return;
    }
    if (!(await this.decide(p, "accepted", content))) return;
    if (this.content(p) !== content) await this.rescue(p);
    await this.finish(p);
  }

  /** Accepts the proposal that the user sees and, by a rule, those of its session or for its file that follow. */
  async acceptAll(scope: "session" | "file"): Promise<void> {
    const p = this.seen();
    if (!p) return this.next();
    this.report(p); // the rule decides only what nobody edited
    await this.companion?.call("workspace/executeCommand", { command: "pollux.setPolicy", arguments: [{ policy: "accept", scope, diffId: p.id }] });
    if (this.find(p.id) === p) await this.accept(p);
  }

  async reject(): Promise<void> {
    const p = this.seen();
    if (!p) return this.next();
    await this.refuse(p);
  }

  /** Ends a conflict: keep has the proposal stand over the file's change, take has the file's lines stand. It does not accept. */
  async settle(how: "keep" | "take", p = this.seen()): Promise<void> {
    const conflict = JSON.stringify(p?.conflict);
    while (p?.deciding) await p.answer; // an acceptance that this very conflict refuses
    if (!p?.conflict || this.find(p.id) !== p) {
      void vscode.window.showInformationMessage("Nothing is in conflict here.");
      return;
    }
    if (JSON.stringify(p.conflict) !== conflict) {
      this.clash(p, p.conflict); // the user has not seen this one
      return;
    }
    await this.decide(p, how, this.content(p));
  }

  /** Shows the proposal behind the one that the user sees, and gives it the focus. */
  async next(): Promise<void> {
    const p = this.following();
    if (p) await this.show(p, true);
    else void vscode.window.showInformationMessage("No proposal waits.");
  }

  /** Ends every diff without a word: the companion has ended in good order, and rejected them. */
  async clear(): Promise<void> {
    this.unheard.clear();
    for (const p of [...this.queue]) await this.finish(p);
  }

  private view(p: Proposal): { diffId: string; filePath: string; content: string; shown: string; oldText: string } {
    return { diffId: p.id, filePath: p.path, content: this.content(p), shown: p.shown, oldText: p.old };
  }

  private find(id: unknown): Proposal | undefined {
    return this.queue.find((p) => p.id === id);
  }

  private of(uri: vscode.Uri): Proposal | undefined {
    return uri.scheme === scheme ? this.queue.find((p) => p.right.toString() === uri.toString()) : undefined;
  }

  /** The proposal whose diff is the front tab of a group, first of the group with the focus. */
  private seen(): Proposal | undefined {
    const { activeTabGroup, all } = vscode.window.tabGroups;
    for (const { activeTab } of [activeTabGroup, ...all]) {
      const p = activeTab?.input instanceof vscode.TabInputTextDiff ? this.of(activeTab.input.modified) : undefined;
      if (p) return p;
    }
    return undefined;
  }

  /** The proposal behind the one that the user sees, else the oldest. */
  private following(): Proposal | undefined {
    const p = this.seen();
    return p ? this.queue[(this.queue.indexOf(p) + 1) % this.queue.length] : this.queue[0];
  }

  private document(p: Proposal): vscode.TextDocument | undefined {
    return vscode.workspace.textDocuments.find((d) => !d.isClosed && d.uri.toString() === p.right.toString());
  }

  /** The text of a proposal as it is now. */
  private content(p: Proposal): string {
    const text = this.document(p)?.getText() ?? this.files.text(p.right);
    return same(text, p.text) ? p.text : restore(text, p.text);
  }

  /** Has the document of a proposal hold a text. Returns false when the user typed before it could. */
  private async put(p: Proposal, content: string): Promise<boolean> {
    const document = this.document(p);
    if (!document || p.fixed) {
      this.files.put(p.right, content, p.fixed !== "");
      return true;
    }
    if (same(document.getText(), content)) return true;
    const newline = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
    const was = document.getText();
    const least = change(was, content.replace(/^\uFEFF/, "").replace(/\r\n|\r|\n/g, newline));
    const edit = new vscode.WorkspaceEdit();
    edit.replace(p.right, new vscode.Range(document.positionAt(least.start), document.positionAt(least.end)), least.with);
    return vscode.workspace.applyEdit(edit);
  }

  /** Tells what the user has edited and nobody has heard of. Returns whether there was any. */
  private report(p: Proposal): boolean {
    const content = this.content(p);
    if (content === p.told || p.fixed) return false;
    p.told = content;
    p.edits++;
    this.companion?.notify("pollux/didChangeDiff", { diffId: p.id, version: p.edits, from: p.version, content });
    return true;
  }

  private edited(document: vscode.TextDocument): void {
    if (document.uri.scheme === "file") this.typed = Date.now();
    const p = this.of(document.uri);
    if (!p || p.timer) return;
    p.timer = setTimeout(() => {
      p.timer = undefined;
      if (this.find(p.id) !== p) return;
      if (p.busy) this.edited(document);
      else this.report(p);
    }, 200);
  }

  /** A save by hand accepts what the user sees. One that VS Code makes by itself, or of all files, does not. */
  private saving(e: vscode.TextDocumentWillSaveEvent): void {
    const p = this.of(e.document.uri);
    if (p && p === this.seen() && e.reason === vscode.TextDocumentSaveReason.Manual) void this.accept(p);
  }

  /** Asks pollux to end a diff, or its conflict, with what is on the screen. It refuses where something is newer, which it tells. */
  private async decide(p: Proposal, outcome: string, content: string): Promise<boolean> {
    if (p.deciding) {
      vscode.window.setStatusBarMessage("pollux: your last decision is not answered yet", 3000);
      return false;
    }
    if (!this.companion) {
      void vscode.window.showWarningMessage("The companion does not run just now. The proposal still waits for your decision.");
      return false;
    }
    p.deciding = true;
    p.told = content;
    p.edits++; // it is an edit as well
    const call = this.companion.call("pollux/resolveDiff", { diffId: p.id, version: p.version, baseVersion: p.base, outcome, content, edit: p.edits });
    p.answer = call.catch(() => {});
    try {
      await call;
      return this.find(p.id) === p;
    } catch (err) {
      if (this.find(p.id) === p) {
        void vscode.window.showWarningMessage(err instanceof Error ? err.message : String(err));
        p.opened = tab(p) !== undefined; // it may have been closed by its save
        this.pump();
      }
      return false;
    } finally {
      p.deciding = false;
    }
  }

  /** Keeps what the user typed between the key that accepts and pollux's answer. */
  private async rescue(p: Proposal): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ content: this.content(p) });
    await vscode.window.showTextDocument(document, { preview: false, preserveFocus: true });
    void vscode.window.showWarningMessage(`${path.basename(p.path)} was accepted without what you have typed since. That is in a new, untitled file.`);
  }

  private async refuse(p: Proposal): Promise<void> {
    if (p.deciding) return;
    this.report(p); // the history keeps what the user made of it
    const rejected = { ...this.view(p), outcome: "rejected" };
    this.unheard.set(p.id, rejected);
    this.companion?.call("pollux/resolveDiff", { diffId: p.id, version: p.version, baseVersion: p.base, outcome: "rejected" }).then(
      () => this.unheard.delete(p.id),
      (err: unknown) => err instanceof RpcError && this.unheard.delete(p.id), // else it has ended
    );
    await this.finish(p);
  }

  /** The one place where a diff ends. It is out of the queue before anything is closed. */
  private async finish(p: Proposal): Promise<void> {
    const at = this.queue.indexOf(p);
    if (at < 0) return;
    this.queue.splice(at, 1);
    clearTimeout(p.timer);
    this.changed.fire();
    const document = this.document(p);
    if (document?.isDirty) await document.save(); // into memory: VS Code asks before it closes what is not saved
    await close(p);
    this.files.drop(p.left, p.right);
    this.pump();
  }

  /** A tab that the user has closed rejects. One that was moved is open elsewhere. */
  private closed(): void {
    for (const p of this.queue.filter((p) => p.opened && !p.deciding && !tab(p))) {
      setTimeout(() => {
        if (this.find(p.id) === p && !p.deciding && !tab(p)) void this.refuse(p);
      }, 100);
    }
  }

  /** Shows a diff. The focus stays where it is unless the user has asked for the diff: nobody knows who types in a terminal. */
  private async show(p: Proposal, focus: boolean): Promise<void> {
    const options: vscode.TextDocumentShowOptions = { viewColumn: column(), preview: false, preserveFocus: !focus };
    this.showing++;
    try {
      await vscode.commands.executeCommand("vscode.diff", p.left, p.right, p.title, options);
    } catch (err) {
      void vscode.window.showErrorMessage(`A diff cannot be shown: ${err instanceof Error ? err.message : err}. Try “pollux review” in a terminal.`);
    }
    this.showing--;
    if (this.find(p.id) !== p) { // it has ended meanwhile
      await close(p);
      return this.pump();
    }
    p.opened = tab(p) !== undefined;
    this.mark(p);
    this.changed.fire();
    if (p.conflict) this.clash(p, p.conflict);
    if (p.fixed) vscode.window.setStatusBarMessage(p.fixed, 8000);
  }

  /** Opens the oldest diff when none is on show and the user pauses. */
  private pump(): void {
    clearTimeout(this.pumping);
    const p = this.queue[0];
    if (!p || this.showing > 0 || this.queue.some((q) => tab(q))) return;
    const pause = idle - (Date.now() - this.typed);
    if (pause > 0) this.pumping = setTimeout(() => this.pump(), pause);
    else void this.show(p, false);
  }

  /** Shows the file's lines beside those of the proposal that they are in conflict with. */
  private mark(p: Proposal): void {
    for (const editor of vscode.window.visibleTextEditors.filter((e) => e.document.uri.toString() === p.right.toString())) {
      editor.setDecorations(
        this.beside,
        (p.conflict?.places ?? []).map((place) => ({
          range: new vscode.Range(place.start, 0, Math.max(place.start, place.end - 1), 0),
          hoverMessage: new vscode.MarkdownString("The file has here:").appendCodeblock(place.text),
          renderOptions: { after: { contentText: ` ◀ the file: ${place.text.trim().split("\n")[0] || "nothing"}`, color: new vscode.ThemeColor("editorCodeLens.foreground") } },
        })),
      );
    }
  }

  private clash(p: Proposal, conflict: Conflict): void {
    const take = conflict.places.length > 0 ? ["Take the File's Lines"] : [];
    void vscode.window.showWarningMessage(`${path.basename(p.path)}: ${conflict.reason}`, "Keep the Proposal", ...take).then((choice) => {
      if (choice && this.find(p.id) === p && p.conflict) void this.settle(choice === "Keep the Proposal" ? "keep" : "take", p);
    });
  }
}

/** Closes the diffs that the window before this one has left. pollux shows again what still waits. */
export async function sweep(): Promise<void> {
  const left = vscode.window.tabGroups.all.flatMap((g) => g.tabs).filter((t) => t.input instanceof vscode.TabInputTextDiff && t.input.modified.scheme === scheme);
  for (const d of vscode.workspace.textDocuments) if (d.uri.scheme === scheme && d.isDirty) await d.save(); // else VS Code asks
  if (left.length > 0) await vscode.window.tabGroups.close(left, true);
}

/** The tabs that show a proposal: the user may have split the view. */
function tabs(p: Proposal): vscode.Tab[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((t) => t.input instanceof vscode.TabInputTextDiff && t.input.modified.toString() === p.right.toString());
}

function tab(p: Proposal): vscode.Tab | undefined {
  return tabs(p)[0];
}

async function close(p: Proposal): Promise<void> {
  const open = tabs(p);
  if (open.length > 0) await vscode.window.tabGroups.close(open, true);
}

/** The group for a diff: it covers no terminal. */
function column(): vscode.ViewColumn {
  const { activeTabGroup, all } = vscode.window.tabGroups;
  return [activeTabGroup, ...all].find((g) => !(g.activeTab?.input instanceof vscode.TabInputTerminal))?.viewColumn ?? vscode.ViewColumn.Beside;
}

/** The texts of diffs as files. They are in memory alone. */
class Files implements vscode.FileSystemProvider {
  private readonly files = new Map<string, { bytes: Uint8Array; time: number; fixed: boolean }>();
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;
  private time = Date.now();

  put(uri: vscode.Uri, text: string, fixed: boolean): void {
    this.files.set(uri.toString(), { bytes: encode(text), time: ++this.time, fixed });
    this.changes.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  drop(...uris: vscode.Uri[]): void {
    for (const uri of uris) this.files.delete(uri.toString());
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const file = this.get(uri);
    return {
      type: vscode.FileType.File,
      ctime: 0,
      mtime: file.time,
      size: file.bytes.length,
      ...(file.fixed && { permissions: vscode.FilePermission.Readonly }),
    };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return this.get(uri).bytes;
  }

  /** What a document holds that is opened anew. */
  text(uri: vscode.Uri): string {
    return new TextDecoder().decode(this.files.get(uri.toString())?.bytes); // without the mark
  }

  writeFile(uri: vscode.Uri, bytes: Uint8Array): void {
    this.files.set(uri.toString(), { fixed: false, ...this.files.get(uri.toString()), bytes, time: ++this.time });
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(): void {
    throw vscode.FileSystemError.NoPermissions();
  }

  delete(): void {
    throw vscode.FileSystemError.NoPermissions();
  }

  rename(): void {
    throw vscode.FileSystemError.NoPermissions();
  }

  private get(uri: vscode.Uri): { bytes: Uint8Array; time: number; fixed: boolean } {
    const file = this.files.get(uri.toString());
    if (!file) throw vscode.FileSystemError.FileNotFound(uri);
    return file;
  }
}
