import { dirName, isBelow, joinPath, nameOf, separatorOf } from "../core/paths";
import type { Connection } from "../net/connection";
import { messageOf } from "../net/protocol";
import { announce, note } from "../ui/announce";
import { choose, confirm, prompt } from "../ui/dialogs";
import { openMenu, type MenuItem } from "../ui/menu";
import type { Doc, Documents } from "./documents";
import type { Tree } from "./tree";
import type { TreeRow } from "./treemodel";

/** What the file actions need from the page. */
export interface FileHost {
  open(path: string): Promise<void>;
  /** Takes a document's tab away; what it held is dealt with. */
  drop(doc: Doc): void;
  /** Open documents have other paths now, by their old ones. */
  moved(paths: ReadonlyMap<string, string>): void;
}

/** Saving, closing, making, renaming and deleting files, with the questions that go with them. */
export class FileActions {
  constructor(
    private readonly connection: Connection,
    private readonly documents: Documents,
    private readonly tree: Tree,
    private readonly host: FileHost,
  ) {
    tree.menuWanted.on(({ row, x, y }) => this.menu(row, { x, y }));
    tree.keyPressed.on(({ row, event }) => {
      if (event.key === "F2" && !row.root) void this.rename(row);
      else if (event.key === "Delete" && !row.root) void this.remove(row);
      else return;
      event.preventDefault();
    });
  }

  /** Saves; says so, or why not. */
  async save(doc: Doc, force = false): Promise<boolean> {
    if (doc.readOnly) {
      note(`${doc.name} is read-only.`, { kind: "problem" });
      return false;
    }
    if (doc.conflict && !force) {
      announce(`${doc.name} has changed on disk: choose above the editor which text to keep.`, true);
      return false;
    }
    try {
      const saved = await this.documents.save(doc, force);
      if (saved) announce(`Saved ${doc.name}`);
      return saved;
    } catch (e) {
      note(`${doc.name} was not saved: ${messageOf(e)}`, { kind: "problem" });
      return false;
    }
  }

  /** Saves an open document because an agent asks for it, but never over what others have written. */
  async saveOpen(path: string): Promise<{ open: boolean; saved: boolean; why?: string }> {
    const doc = this.documents.get(path);
    if (!doc) return { open: false, saved: false };
    if (!doc.dirty) return { open: true, saved: true };
    const not = (why: string): { open: boolean; saved: boolean; why: string } => ({ open: true, saved: false, why });
    if (doc.readOnly) return not("it is read-only");
    try {
      if (doc.conflict || !(await this.documents.save(doc))) return not("it has changed on disk since the page read it");
    } catch (e) {
      return not(messageOf(e));
    }
    announce(`Saved ${doc.name}, as an agent asked`);
    return { open: true, saved: true };
  }

  /** Closes a document; asks when there is something unsaved. */
  async close(doc: Doc): Promise<void> {
    if (doc.dirty) {
      const answer = await choose(`Save ${doc.name}?`, "It has unsaved changes.", [
        { value: "save", label: "Save", kind: "primary" },
        { value: "discard", label: "Discard", kind: "danger" },
        { value: "cancel", label: "Cancel" },
      ]);
      if (answer === "save") {
        // What was typed while the save was under way is not on the disk.
        if (!(await this.save(doc)) || doc.dirty) return;
      } else if (answer !== "discard") return;
    }
    this.documents.close(doc);
    this.host.drop(doc);
  }

  private menu(row: TreeRow, at: { x: number; y: number }): void {
    const folder = row.kind === "dir" ? row.path : dirName(row.path);
    const items: MenuItem[] = [
      { label: "New file…", run: () => void this.create(false, folder), testid: "menu-new-file" },
      { label: "New folder…", run: () => void this.create(true, folder), testid: "menu-new-folder" },
    ];
    if (!row.root) {
      items.push({ label: "Rename…", keys: "F2", run: () => void this.rename(row), testid: "menu-rename" }, { label: "Delete…", keys: "Del", run: () => void this.remove(row), testid: "menu-delete" });
    }
    items.push({
      label: "Copy path",
      run: () => void navigator.clipboard.writeText(row.path).then(() => announce("Path copied"), () => note(row.path)),
      testid: "menu-copy-path",
    });
    openMenu(row.name, items, at);
  }

  /** Makes a file or folder below a folder; the name may hold further folders. */
  async create(dir: boolean, folder = this.tree.targetFolder): Promise<void> {
    const name = await prompt(dir ? "New folder" : "New file", `Name, in ${nameOf(folder)}`);
    if (!name) return;
    const path = joinPath(folder, name.replace(/[\\/]+/g, separatorOf(folder)));
    await this.attempt(async () => {
      await this.connection.request("file/create", { path, dir });
      if (!dir) await this.host.open(path);
      await this.tree.refresh();
      await this.tree.select(path, true);
    });
  }

  private async rename(row: TreeRow): Promise<void> {
    const dot = row.kind === "file" ? row.name.lastIndexOf(".") : -1;
    const name = await prompt(`Rename ${row.name}`, "New name", row.name, dot > 0 ? dot : row.name.length);
    if (!name || name === row.name) return;
    const sep = separatorOf(row.path);
    const to = joinPath(dirName(row.path), name.replace(/[\\/]+/g, sep));
    await this.attempt(async () => {
      await this.connection.request("file/rename", { from: row.path, to });
      this.host.moved(this.documents.renamed(row.path, to, sep));
      await this.tree.refresh();
      await this.tree.select(to, true);
      this.tree.focus();
    });
  }

  private async remove(row: TreeRow): Promise<void> {
    const open = this.documents.list.filter((d) => isBelow(d.path, row.path));
    const unsaved = open.some((d) => d.dirty) ? " Unsaved changes go with it." : "";
    const what = row.kind === "dir" ? "The folder and everything in it are deleted" : "The file is deleted";
    if (!(await confirm(`Delete ${row.name}?`, `${what} from the disk.${unsaved}`, "Delete"))) return;
    await this.attempt(async () => {
      await this.connection.request("file/delete", { path: row.path, recursive: row.kind === "dir" });
      for (const doc of open) {
        this.documents.close(doc);
        this.host.drop(doc);
      }
      await this.tree.refresh();
      this.tree.focus();
      announce(`Deleted ${row.name}`);
    });
  }

  private async attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (e) {
      note(messageOf(e), { kind: "problem" });
    }
  }
}
