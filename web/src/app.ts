import { Transaction } from "@codemirror/state";
import { dirName, displayPath, nameOf, plain } from "./core/paths";
import { activeContext, EditorPane } from "./editor/pane";
import { FileActions } from "./files/actions";
import { ConflictBar } from "./files/conflict";
import { ContextReporter } from "./files/context";
import { Documents, type Doc } from "./files/documents";
import { DeskKeeper, readDesk, without } from "./files/drafts";
import { Tree } from "./files/tree";
import type { Connection } from "./net/connection";
import { Code, messageOf, RpcError, type ContextReport, type Hello, type Position, type Root } from "./net/protocol";
import { Diffs } from "./review/diffs";
import { HistoryPanel } from "./review/history";
import { ReviewPane } from "./review/pane";
import { Policy } from "./review/policy";
import { Queue } from "./review/queue";
import { Review } from "./review/review";
import { announce, note } from "./ui/announce";
import { byId } from "./ui/dom";
import { quickOpen } from "./ui/quickopen";
import { share, showSessions, type Target } from "./ui/sessions";
import { Status } from "./ui/status";
import { Tabs, type Tab } from "./ui/tabs";

/** What the main part of the page shows: a document by its path, or one of the page's own views. */
type Shown = { kind: "file"; path: string } | { kind: "review" } | { kind: "history" } | { kind: "empty" };

const reviewId = "pollux:review";
const historyId = "pollux:history";

/**
 * The page: owns one of each part and connects them. It decides what the main part shows; every change of that goes
 * through `show`.
 */
export class App {
  readonly tree: Tree;
  readonly pane = new EditorPane(byId("pane-editor"));
  readonly documents: Documents;
  readonly diffs: Diffs;
  readonly review: Review;
  readonly files: FileActions;
  readonly status: Status;
  readonly context: ContextReporter;
  private readonly policy: Policy;
  private readonly history: HistoryPanel;
  private readonly queue: Queue;
  private readonly tabs: Tabs;
  private readonly conflicts: ConflictBar;
  private readonly desk: DeskKeeper;
  /** What the page before a reload left and this one has not brought back yet. */
  private waiting = readDesk();
  private restoring = false;
  private roots: Root[] = [];
  private shown: Shown = { kind: "empty" };
  /** Documents by last showing, newest last: what to go back to when a tab closes. */
  private trail: Shown[] = [];
  private historyOpen = false;
  private typedAt = -Infinity;
  /** The process that was greeted last. */
  private companion = 0;

  constructor(
    private readonly connection: Connection,
    readonly clientId: string,
  ) {
    this.status = new Status((sessions, paused) => void showSessions(connection, sessions, paused, this.target()));
    this.documents = new Documents(connection, this.pane.makeState);
    this.tree = new Tree(byId("tree"), connection);
    this.diffs = new Diffs(connection, clientId);
    this.policy = new Policy(connection, byId("status-policy") as HTMLButtonElement);
    this.history = new HistoryPanel(byId("pane-history"), connection, () => this.roots);
    const reviewPane = new ReviewPane(byId("pane-review"), {
      accept: (d) => void this.review.accept(d),
      reject: (d) => void this.review.reject(d),
      resolve: (d, take) => void this.review.resolve(d, take),
      policy: (d, at) => this.policy.openMenu(d, at),
      step: (by) => void this.review.step(by),
      isDirty: (path) => this.documents.get(path)?.dirty ?? false,
      openFile: (path) => void this.open(path),
    });
    this.review = new Review(this.diffs, reviewPane, {
      visible: () => this.shown.kind === "review",
      setVisible: (visible, focus) => (visible ? this.show({ kind: "review" }) : this.back(focus)),
      idle: () => performance.now() - this.typedAt,
      isDirty: (path) => this.documents.get(path)?.dirty ?? false,
      roots: () => this.roots,
    });
    this.queue = new Queue(byId("queue"), byId("queue-list"), byId("queue-count"), (d) => void this.review.show(d));
    this.files = new FileActions(connection, this.documents, this.tree, { open: (path) => this.open(path), drop: (doc) => this.dropped(doc), moved: (paths) => this.moved(paths) });
    this.tabs = new Tabs(byId("tabs"), { activate: (id, focus) => this.activateTab(id, focus), close: (id) => this.closeTab(id) });
    this.conflicts = new ConflictBar(byId("conflict"), this.documents, (doc, force) => void this.files.save(doc, force), (doc) => void this.files.close(doc), () => this.pane.focus());
    this.desk = new DeskKeeper(() => this.documents.list, () => (this.shown.kind === "file" ? this.shown.path : ""), () => this.waiting);
    this.context = new ContextReporter(connection, () => this.report());
    this.connect();
  }

  /** Ties the parts' events together. */
  private connect(): void {
    this.tree.chosen.on(({ path, keep }) => void this.open(path, { focus: !keep }));
    this.documents.changed.on(() => this.refresh());
    this.pane.updated.on(({ typed }) => {
      if (typed) this.typedAt = performance.now();
      this.refresh();
    });
    this.diffs.changed.on(() => this.refresh());
    this.review.changed.on(() => this.refresh());
    this.connection.on("file/changed", ({ path, version }) => void this.documents.fileChanged(path, version).catch(() => undefined));
    this.connection.on("tree/changed", ({ dirs }) => void this.tree.refresh(dirs));
    this.connection.on("sessions/changed", ({ sessions }) => this.status.setSessions(sessions));
    this.connection.on("troubles/changed", ({ troubles }) => this.status.setTroubles(troubles));
    this.connection.on("roots/changed", ({ roots }) => this.setRoots(roots));
    this.connection.on("open", ({ path, position, takeFocus }) => void this.open(path, { position, focus: takeFocus }));
    document.addEventListener("keydown", (e) => e.key.length === 1 && !e.ctrlKey && !e.metaKey && this.noteTyping(e));
  }

  private noteTyping(e: KeyboardEvent): void {
    if (e.target instanceof HTMLElement && (e.target.isContentEditable || e.target instanceof HTMLInputElement)) this.typedAt = performance.now();
  }

  /** The connection is open, for the first time or again: take over what the companion says, repeat what it has to know, look at what may have changed meanwhile. */
  async opened(hello: Hello): Promise<void> {
    this.setRoots(hello.roots);
    this.status.setSessions(hello.sessions, true);
    this.status.setTroubles(hello.troubles ?? []);
    this.policy.set(hello.rules);
    this.context.repeat();
    this.diffs.sync(hello.diffs ?? [], this.companion !== 0 && this.companion !== hello.pid);
    this.companion = hello.pid;
    await Promise.all(this.documents.list.map((d) => this.documents.refresh(d).catch(() => undefined)));
  }

  /** Brings back what a reload interrupted; what cannot be brought back for want of a connection waits for the next. */
  async restore(): Promise<void> {
    if (this.restoring) return;
    this.restoring = true;
    const { open, active, drafts } = this.waiting;
    for (const { path, head, scrollTop } of open) {
      try {
        const doc = await this.documents.open(path, drafts.find((d) => d.path === path));
        doc.dispatch({ selection: { anchor: Math.min(head, doc.state.doc.length) }, annotations: Transaction.addToHistory.of(false) });
        doc.scrollTop = scrollTop;
        this.pane.colour(doc);
      } catch (e) {
        if (e instanceof RpcError && e.code === Code.offline) break;
        // Gone meanwhile.
      }
      this.waiting = without(this.waiting, path);
    }
    this.restoring = false;
    if (this.waiting.open.length > 0) return;
    if (this.shown.kind === "empty" && this.documents.get(active)) this.show({ kind: "file", path: active });
    this.waiting = { open: [], active: "", drafts: [] };
    this.refresh();
  }

  private setRoots(roots: Root[]): void {
    this.roots = roots;
    byId("project").textContent = roots.length === 1 ? plain(roots[0]?.name ?? "") : `${roots.length} folders`;
    byId("project").title = roots.map((r) => r.path).join("\n");
    this.tree.setRoots(roots);
    this.refresh();
  }

  /** Opens a file and shows it. */
  async open(path: string, options: { position?: Position | undefined; focus?: boolean } = {}): Promise<void> {
    const isNew = !this.documents.get(path);
    try {
      const doc = await this.documents.open(path);
      if (isNew) this.pane.colour(doc);
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
      return;
    }
    this.show({ kind: "file", path });
    if (options.position) this.pane.goTo(options.position);
    if (options.focus ?? true) this.pane.focus();
  }

  /** Shows something in the main part. */
  private show(what: Shown): void {
    const same = JSON.stringify(what);
    this.trail = [...this.trail.filter((t) => JSON.stringify(t) !== same), what].slice(-50);
    this.shown = what;
    const doc = what.kind === "file" ? (this.documents.get(what.path) ?? null) : null;
    for (const kind of ["editor", "review", "history", "empty"] as const) {
      byId(`pane-${kind}`).hidden = kind !== (what.kind === "file" ? "editor" : what.kind);
    }
    if (doc) this.pane.show(doc);
    void this.tree.select(doc?.path ?? "", doc !== null);
    if (what.kind === "history") void this.history.refresh();
    this.refresh();
  }

  /** Shows what was shown before, with the focus where work went on when `focus` is set. */
  private back(focus: boolean): void {
    this.trail.pop();
    const there = this.trail.findLast((t) => (t.kind === "file" ? this.documents.get(t.path) : t.kind === "review" ? this.diffs.list.length > 0 : t.kind === "history" && this.historyOpen));
    const last = this.documents.list.at(-1);
    if (there?.kind === "review") void this.review.show();
    else this.show(there ?? (last ? { kind: "file", path: last.path } : { kind: "empty" }));
    if (!focus) return;
    if (this.shown.kind === "file") this.pane.focus();
    else if (this.shown.kind === "empty") this.tree.focus();
  }

  private dropped(doc: Doc): void {
    this.pane.show(this.pane.doc === doc ? null : this.pane.doc);
    if (this.shown.kind === "file" && this.shown.path === doc.path) this.back(true);
    else this.refresh();
  }

  private moved(paths: ReadonlyMap<string, string>): void {
    const follow = (t: Shown): Shown => (t.kind === "file" ? { kind: "file", path: paths.get(t.path) ?? t.path } : t);
    this.shown = follow(this.shown);
    this.trail = this.trail.map(follow);
    for (const path of paths.values()) {
      const doc = this.documents.get(path);
      if (doc) this.pane.colour(doc);
    }
    this.refresh();
  }

  private activateTab(id: string, focus: boolean): void {
    if (id === reviewId) void this.review.show(undefined, focus);
    else if (id === historyId) this.show({ kind: "history" });
    else {
      this.show({ kind: "file", path: id });
      if (focus) this.pane.focus();
    }
  }

  private closeTab(id: string): void {
    const doc = this.documents.get(id);
    if (doc) {
      void this.files.close(doc);
    } else if (id === historyId) {
      this.historyOpen = false;
      if (this.shown.kind === "history") this.back(true);
      else this.refresh();
    }
  }

  /** Shows the history. */
  showHistory(): void {
    this.historyOpen = true;
    this.show({ kind: "history" });
  }

  /** Saves the shown document. */
  save(): void {
    const { doc } = this.pane;
    if (this.shown.kind === "file" && doc) void this.files.save(doc);
    else announce("There is no file to save here");
  }

  /** Has agents be told nothing of what the user looks at; while that is so, everything again. */
  pause(): void {
    void share(this.connection, !this.status.paused);
  }

  /** Closes the shown tab. */
  closeShown(): void {
    const id = this.shownId();
    if (id) this.closeTab(id);
  }

  /** Shows the next or previous tab. */
  stepTab(by: 1 | -1): void {
    const tabs = this.tabList();
    const at = tabs.findIndex((t) => t.id === this.shownId());
    const next = tabs[(at + by + tabs.length) % tabs.length];
    if (next) this.activateTab(next.id, true);
  }

  /** Asks for a file to open. */
  async quickOpen(): Promise<void> {
    const recent = this.trail.flatMap((t) => (t.kind === "file" ? [t.path] : [])).reverse();
    const path = await quickOpen(this.connection, this.roots, recent);
    if (path) await this.open(path);
  }

  private shownId(): string {
    return { file: this.shown.kind === "file" ? this.shown.path : "", review: reviewId, history: historyId, empty: "" }[this.shown.kind];
  }

  private tabList(): Tab[] {
    const names = new Map<string, number>();
    for (const { name } of this.documents.list) names.set(name, (names.get(name) ?? 0) + 1);
    const tabs: Tab[] = this.documents.list.map((d) => ({
      id: d.path,
      label: d.name,
      title: d.path,
      detail: (names.get(d.name) ?? 0) > 1 ? displayPath(dirName(d.path), this.roots) : undefined,
      kind: "file",
      dirty: d.dirty,
      conflict: d.conflict !== null,
      closable: true,
    }));
    const { length } = this.diffs.list;
    if (length > 0) tabs.unshift({ id: reviewId, label: length === 1 ? "Proposal" : `Proposals · ${length}`, title: "Proposed changes", kind: "review", closable: false });
    if (this.historyOpen) tabs.push({ id: historyId, label: "History", title: "Past proposals", kind: "history", closable: true });
    return tabs;
  }

  /** Whether leaving the page would lose something. */
  get unsaved(): boolean {
    return this.documents.list.some((d) => d.dirty) || this.diffs.list.some((d) => d.unsent);
  }

  /** Keeps the desk at once, and sends what waits, before the page goes. */
  leave(): void {
    this.desk.write();
    this.diffs.sendAll();
  }

  /** Draws everything that depends on what is shown and open. */
  private refresh(): void {
    const doc = this.shown.kind === "file" ? this.pane.doc : null;
    const { list } = this.diffs;
    this.tabs.show(this.tabList(), this.shownId());
    this.conflicts.show(doc);
    this.status.document(doc);
    this.status.pending(list.length);
    this.queue.show(list, this.shown.kind === "review" ? this.review.shown : null, this.roots);
    const name = doc ? `${doc.dirty ? "● " : ""}${doc.name} – ` : "";
    const project = this.roots.length === 1 ? `${nameOf(this.roots[0]?.path ?? "")} – ` : "";
    document.title = `${list.length > 0 ? `(${list.length}) ` : ""}${name}${project}pollux`;
    byId("panes").setAttribute("aria-label", doc?.name ?? { review: "Proposal", history: "History", file: "", empty: "No file" }[this.shown.kind]);
    this.desk.touch();
    this.context.touch();
  }

  /** What a mention would be of. */
  private target(): Target | null {
    const doc = this.shown.kind === "file" ? this.pane.doc : null;
    if (!doc) return null;
    const { from, to, empty } = doc.state.selection.main;
    const text = doc.state.doc;
    const last = text.lineAt(to);
    const before = to === last.from && to > from; // nothing of the last line is selected
    return { path: doc.path, name: doc.name, first: empty ? 0 : text.lineAt(from).number, last: empty ? 0 : before ? last.number - 1 : last.number };
  }

  /** What this page shows, for the context. Proposals and history are not files: while they are on show nothing is active (SPEC C-6). */
  private report(): ContextReport {
    const docs = this.documents.list;
    const doc = this.shown.kind === "file" ? this.pane.doc : null;
    return {
      focused: document.hasFocus(),
      active: doc ? activeContext(doc) : null,
      open: docs.map((d) => d.path),
      dirty: docs.filter((d) => d.dirty).map((d) => d.path),
    };
  }
}
