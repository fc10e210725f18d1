import { isBelow } from "../core/paths";
import type { Root, TreeEntry } from "../net/protocol";

/** A visible line of the tree. `level` is 1-based; `position` and `size` are its place among its siblings, 1-based. */
export interface TreeRow {
  path: string;
  name: string;
  kind: "file" | "dir" | "link";
  ignored: boolean;
  root: boolean;
  expanded: boolean;
  loading: boolean;
  level: number;
  position: number;
  size: number;
}

/** What the tree knows of the workspace: the listings fetched so far and which folders stand open. It renders nothing. */
export class TreeModel {
  roots: Root[] = [];
  private readonly listings = new Map<string, TreeEntry[]>();
  private readonly expanded = new Set<string>();

  /** Whether a folder stands open. */
  isExpanded(path: string): boolean {
    return this.expanded.has(path);
  }

  /** Whether a folder's listing is known. */
  isListed(path: string): boolean {
    return this.listings.has(path);
  }

  /** Opens or closes a folder. */
  setExpanded(path: string, open: boolean): void {
    if (open) this.expanded.add(path);
    else this.expanded.delete(path);
  }

  /** The folders that stand open and are listed, so have to be kept fresh. */
  get openFolders(): string[] {
    return [...this.expanded];
  }

  /** Records a folder's listing. */
  setListing(path: string, entries: TreeEntry[]): void {
    this.listings.set(path, entries);
  }

  /** Forgets a folder that has gone, with all below it. */
  forget(path: string): void {
    for (const known of [...this.listings.keys(), ...this.expanded]) {
      if (!isBelow(known, path)) continue;
      this.listings.delete(known);
      this.expanded.delete(known);
    }
  }

  /** The visible lines, top down. */
  rows(): TreeRow[] {
    const rows: TreeRow[] = [];
    this.roots.forEach((root, i) => {
      const entry: TreeEntry = { name: root.name, path: root.path, kind: "dir" };
      this.push(rows, entry, 1, i + 1, this.roots.length, true);
    });
    return rows;
  }

  private push(rows: TreeRow[], entry: TreeEntry, level: number, position: number, size: number, root: boolean): void {
    const expanded = entry.kind === "dir" && this.expanded.has(entry.path);
    const children = expanded ? this.listings.get(entry.path) : undefined;
    rows.push({
      path: entry.path,
      name: entry.name,
      kind: entry.kind,
      ignored: entry.ignored ?? false,
      root,
      expanded,
      loading: expanded && !children,
      level,
      position,
      size,
    });
    children?.forEach((child, i) => this.push(rows, child, level + 1, i + 1, children.length, false));
  }
}

/** What a key does in the tree. */
export type TreeAction = { focus: number } | { expand: TreeRow } | { collapse: TreeRow } | { activate: TreeRow };

/** The action of a navigation key on the line at `at`, by the tree pattern of the ARIA practices; null when the key is none. */
export function treeKey(key: string, rows: readonly TreeRow[], at: number): TreeAction | null {
  const row = rows[at];
  if (!row) return rows.length > 0 ? { focus: 0 } : null;
  switch (key) {
    case "ArrowDown":
      return { focus: Math.min(at + 1, rows.length - 1) };
    case "ArrowUp":
      return { focus: Math.max(at - 1, 0) };
    case "Home":
      return { focus: 0 };
    case "End":
      return { focus: rows.length - 1 };
    case "ArrowRight":
      if (row.kind !== "dir") return null;
      return row.expanded ? { focus: Math.min(at + 1, rows.length - 1) } : { expand: row };
    case "ArrowLeft": {
      if (row.expanded) return { collapse: row };
      let parent = at;
      while (parent > 0 && (rows[parent]?.level ?? 0) >= row.level) parent--;
      return { focus: parent };
    }
    case "Enter":
    case " ":
      return { activate: row };
    default:
      return null;
  }
}

/** The next line, from `at` on and around, whose name starts with `prefix`; -1 when none does. */
export function typeAhead(prefix: string, rows: readonly TreeRow[], at: number): number {
  const wanted = prefix.toLowerCase();
  const from = prefix.length > 1 ? at : at + 1;
  for (let i = 0; i < rows.length; i++) {
    const n = (from + i) % rows.length;
    if (rows[n]?.name.toLowerCase().startsWith(wanted)) return n;
  }
  return -1;
}
