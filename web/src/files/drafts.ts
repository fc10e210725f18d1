import { debounce } from "../core/throttle";
import type { Doc, Draft } from "./documents";

/** What a reload brings back: the open files, the shown one, and what was unsaved in them. */
export interface Desk {
  open: { path: string; head: number; scrollTop: number }[];
  active: string;
  drafts: Draft[];
}

const key = "pollux.desk";

/** Together, in UTF-16 units, what sessionStorage is trusted to hold; larger drafts are left to the browser's own warning before leaving. */
const draftLimit = 1_500_000;

/** Reads what the page before the reload left; empty when there is nothing. */
export function readDesk(): Desk {
  try {
    const desk = JSON.parse(sessionStorage.getItem(key) ?? "null") as Desk | null;
    if (desk && Array.isArray(desk.open) && Array.isArray(desk.drafts)) return desk;
  } catch {
    // Unreadable is as good as none.
  }
  return { open: [], active: "", drafts: [] };
}

/** What has been brought back, so need not be waited for: a desk without one path. */
export function without(desk: Desk, path: string): Desk {
  return { open: desk.open.filter((o) => o.path !== path), active: desk.active, drafts: desk.drafts.filter((d) => d.path !== path) };
}

/** Keeps the desk in sessionStorage, so that a reload of this browser tab loses nothing. */
export class DeskKeeper {
  /** Something changed; it is kept soon. */
  readonly touch = debounce(() => this.write(), 400);

  constructor(
    private readonly docs: () => Doc[],
    private readonly active: () => string,
    /** What an earlier page left and this one has not brought back yet: it is kept for the next. */
    private readonly waiting: () => Desk,
  ) {}

  /** Keeps the desk now. */
  write(): void {
    const docs = this.docs();
    const waiting = this.waiting();
    const desk: Desk = {
      open: [...docs.map((d) => ({ path: d.path, head: d.state.selection.main.head, scrollTop: d.view ? d.view.scrollDOM.scrollTop : d.scrollTop })), ...waiting.open],
      active: this.active() || waiting.active,
      drafts: [...waiting.drafts],
    };
    let budget = draftLimit;
    for (const doc of docs) {
      if (!doc.dirty || doc.state.doc.length > budget) continue;
      budget -= doc.state.doc.length;
      desk.drafts.push({ path: doc.path, text: doc.state.doc.toString(), version: doc.version });
    }
    try {
      sessionStorage.setItem(key, JSON.stringify(desk));
    } catch {
      // Full: the warning before leaving remains.
    }
  }
}
