import { dirName, isBelow, plain } from "../core/paths";
import { Signal } from "../core/signal";
import type { Connection } from "../net/connection";
import { messageOf, type Root } from "../net/protocol";
import { note } from "../ui/announce";
import { h, icon } from "../ui/dom";
import { TreeModel, treeKey, typeAhead, type TreeRow } from "./treemodel";

/** The file tree: a `role=tree` with a roving tab stop that fetches a folder when it is first opened. */
export class Tree {
  /** A file was chosen; `keep` when the keyboard should stay in the tree. */
  readonly chosen = new Signal<{ path: string; keep: boolean }>();
  /** A menu is wanted for a line, at a point of the window. */
  readonly menuWanted = new Signal<{ row: TreeRow; x: number; y: number }>();
  /** Keys that the tree itself does not handle, with the line they were pressed on. */
  readonly keyPressed = new Signal<{ row: TreeRow; event: KeyboardEvent }>();
  private readonly model = new TreeModel();
  private rows: TreeRow[] = [];
  private elements: HTMLElement[] = [];
  /** The lines on the page by their paths, with what they show. */
  private drawn = new Map<string, { look: string; element: HTMLElement }>();
  private focusPath = "";
  private selectedPath = "";
  private showIgnored = false;
  /** Folders of which the user knows that not all of them is listed. */
  private readonly cut = new Set<string>();
  private typed = "";
  private typedAt = 0;

  constructor(
    private readonly element: HTMLElement,
    private readonly connection: Connection,
  ) {
    element.addEventListener("keydown", (e) => this.onKey(e));
    element.addEventListener("click", (e) => this.onClick(e));
    element.addEventListener("contextmenu", (e) => this.onMenu(e));
  }

  /** Shows these folders; new ones are open. */
  setRoots(roots: Root[]): void {
    const known = new Set(this.model.roots.map((r) => r.path));
    this.model.roots = roots;
    for (const root of roots) if (!known.has(root.path)) this.model.setExpanded(root.path, true);
    this.render();
    void this.refresh(this.model.openFolders);
  }

  /** Shows or hides ignored files; returns whether they are shown now. */
  toggleIgnored(): boolean {
    this.showIgnored = !this.showIgnored;
    void this.refresh(this.model.openFolders);
    return this.showIgnored;
  }

  /** Fetches folders again, of those that are open; none given means all. */
  async refresh(dirs: readonly string[] = this.model.openFolders): Promise<void> {
    await Promise.all(dirs.filter((d) => this.model.isExpanded(d)).map((d) => this.fetch(d)));
    this.render();
  }

  /** Marks a file as the shown one, and opens the folders that lead to it when `reveal` is set. */
  async select(path: string, reveal = false): Promise<void> {
    this.selectedPath = path;
    if (reveal && path) {
      const root = this.model.roots.find((r) => isBelow(path, r.path));
      for (let dir = dirName(path); root && dir.length >= root.path.length; dir = dirName(dir)) {
        this.model.setExpanded(dir, true);
        if (!this.model.isListed(dir)) await this.fetch(dir);
        if (dir === dirName(dir)) break;
      }
      this.focusPath = path;
    }
    this.render();
    if (reveal) this.elements[this.indexOf(path)]?.scrollIntoView({ block: "nearest" });
  }

  /** The folder that something new would go to: the focused folder, or that of the focused file. */
  get targetFolder(): string {
    const row = this.rows[this.focusIndex];
    if (!row) return this.model.roots[0]?.path ?? "";
    return row.kind === "dir" ? row.path : dirName(row.path);
  }

  /** Gives the tree the keyboard. */
  focus(): void {
    this.elements[this.focusIndex]?.focus();
  }

  /** The line that has the tab stop: the first one while the focused path is not in the tree (yet). */
  private get focusIndex(): number {
    return Math.max(0, this.indexOf(this.focusPath));
  }

  private indexOf(path: string): number {
    return this.rows.findIndex((r) => r.path === path);
  }

  private async fetch(path: string): Promise<void> {
    try {
      const { entries, truncated } = await this.connection.request("tree/list", { path, showIgnored: this.showIgnored });
      this.model.setListing(path, entries);
      if (truncated && !this.cut.has(path)) note(`${plain(path)} holds more entries than can be listed; use quick open to find the rest.`);
      if (truncated) this.cut.add(path);
    } catch (e) {
      if (this.connection.state !== "open") return;
      if (this.model.isListed(path)) this.model.forget(path);
      else {
        this.model.setExpanded(path, false);
        note(messageOf(e), { kind: "problem" });
      }
    }
  }

  private async setExpanded(row: TreeRow, open: boolean): Promise<void> {
    this.model.setExpanded(row.path, open);
    this.render();
    if (!open) return;
    await this.fetch(row.path);
    this.render();
  }

  private activate(row: TreeRow, keep: boolean): void {
    if (row.kind === "dir") void this.setExpanded(row, !row.expanded);
    else this.chosen.emit({ path: row.path, keep });
  }

  private onKey(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const at = this.focusIndex;
    const row = this.rows[at];
    const action = treeKey(e.key, this.rows, at);
    if (action) {
      e.preventDefault();
      if ("focus" in action) this.moveFocus(action.focus);
      else if ("expand" in action) void this.setExpanded(action.expand, true);
      else if ("collapse" in action) void this.setExpanded(action.collapse, false);
      else this.activate(action.activate, e.key === " ");
    } else if (row && (e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey))) {
      e.preventDefault();
      const box = this.elements[at]?.getBoundingClientRect();
      this.menuWanted.emit({ row, x: (box?.left ?? 0) + 24, y: box?.bottom ?? 0 });
    } else if (e.key.length === 1 && e.key !== "?") {
      this.typed = e.timeStamp - this.typedAt < 700 ? this.typed + e.key : e.key;
      this.typedAt = e.timeStamp;
      const found = typeAhead(this.typed, this.rows, at);
      if (found >= 0) this.moveFocus(found);
    } else if (row) {
      this.keyPressed.emit({ row, event: e });
    }
  }

  private moveFocus(at: number): void {
    const row = this.rows[at];
    if (!row) return;
    this.focusPath = row.path;
    this.mark();
    this.elements[at]?.focus();
  }

  private rowOf(e: Event): TreeRow | undefined {
    const element = e.target instanceof Element ? e.target.closest<HTMLElement>('[role="treeitem"]') : null;
    return element ? this.rows[this.elements.indexOf(element)] : undefined;
  }

  private onClick(e: MouseEvent): void {
    const row = this.rowOf(e);
    if (!row) return;
    this.focusPath = row.path;
    this.activate(row, false);
    this.render();
  }

  private onMenu(e: MouseEvent): void {
    const row = this.rowOf(e);
    if (!row) return;
    e.preventDefault();
    this.moveFocus(this.rows.indexOf(row));
    this.menuWanted.emit({ row, x: e.clientX, y: e.clientY });
  }

  /** Draws the visible lines, those that look different anew, keeping the keyboard on the same path. */
  private render(): void {
    const hadFocus = this.element.contains(document.activeElement);
    this.rows = this.model.rows();
    const before = this.drawn;
    this.drawn = new Map();
    this.elements = this.rows.map((row) => {
      const look = JSON.stringify(row);
      const known = before.get(row.path);
      const line = known?.look === look ? known : { look, element: this.renderRow(row) };
      this.drawn.set(row.path, line);
      return line.element;
    });
    const { children } = this.element;
    if (children.length !== this.elements.length || this.elements.some((el, i) => children[i] !== el)) this.element.replaceChildren(...this.elements);
    this.mark();
    if (hadFocus) this.elements[this.focusIndex]?.focus({ preventScroll: true });
  }

  /** Gives the tab stop and the selection to their lines. */
  private mark(): void {
    const stop = this.focusIndex;
    this.elements.forEach((el, i) => {
      const tab = i === stop ? 0 : -1;
      if (el.tabIndex !== tab) el.tabIndex = tab;
      const selected = String(this.rows[i]?.path === this.selectedPath);
      if (el.ariaSelected !== selected) el.ariaSelected = selected;
    });
  }

  private renderRow(row: TreeRow): HTMLElement {
    const element = h(
      "div",
      {
        role: "treeitem",
        class: `tree-row tree-${row.kind}${row.root ? " tree-root" : ""}${row.ignored ? " ignored" : ""}`,
        tabindex: -1,
        "aria-level": row.level,
        "aria-posinset": row.position,
        "aria-setsize": row.size,
        "aria-expanded": row.kind === "dir" ? String(row.expanded) : null,
        "aria-selected": "false",
        "aria-busy": row.loading ? "true" : null,
        "data-path": row.path,
        testid: "tree-item",
      },
      row.kind === "dir" ? icon("chevron") : h("span", { class: "tree-leaf" }),
      h("span", { class: "tree-name", title: row.name.length > 24 ? plain(row.name) : null, text: plain(row.name) }),
    );
    element.style.setProperty("--level", String(row.level));
    return element;
  }
}
