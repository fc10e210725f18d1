import type { Text } from "@codemirror/state";
import type { Replacement } from "../core/changes";

/** The place of one change: offsets in the old text (a) and the proposal (b); the ends may lie one beyond the text, as @codemirror/merge counts. */
export interface Hunk {
  fromA: number;
  toA: number;
  fromB: number;
  toB: number;
}

/** The replacement in the proposal that brings a hunk's old lines back. */
export function revertHunk(hunk: Hunk, old: Text, proposal: Text): Replacement {
  let insert = old.sliceString(hunk.fromA, Math.max(hunk.fromA, hunk.toA - 1));
  if (hunk.fromA !== hunk.toA && hunk.toB <= proposal.length) insert += "\n";
  return { from: Math.min(proposal.length, hunk.fromB), to: Math.min(proposal.length, hunk.toB), insert };
}

/** The index of the hunk at an offset of the proposal; -1 when there is none. */
export function hunkAt(hunks: readonly Hunk[], offset: number): number {
  return hunks.findIndex((c) => c.fromB <= offset && Math.max(c.fromB, c.toB - 1) >= offset);
}

/** The hunk to go to from an offset of the proposal, around the ends; -1 when there are none. `skip` leaves hunks out as long as others remain. */
export function nextHunk(hunks: readonly Hunk[], offset: number, step: 1 | -1, skip: (hunk: Hunk) => boolean = () => false): number {
  const n = hunks.length;
  if (n === 0) return -1;
  const here = hunkAt(hunks, offset);
  let first: number;
  if (here >= 0) first = here + step;
  else if (step > 0) first = hunks.findIndex((c) => c.fromB > offset);
  else first = hunks.findLastIndex((c) => c.fromB < offset);
  if (here < 0 && first < 0) first = step > 0 ? 0 : n - 1;
  for (let i = 0; i < n; i++) {
    const at = (((first + i * step) % n) + n) % n;
    const hunk = hunks[at];
    if (hunk && !skip(hunk)) return at;
  }
  return ((first % n) + n) % n;
}

/** Lines that a set of hunks adds and removes. */
export function countLines(hunks: readonly Hunk[], old: Text, proposal: Text): { added: number; removed: number } {
  const lines = (text: Text, from: number, to: number) => {
    if (from >= to || text.length === 0) return 0;
    const last = text.lineAt(Math.min(Math.max(from, to - 1), text.length));
    const count = last.number - text.lineAt(Math.min(from, text.length)).number + 1;
    // What follows a final newline is no line for a person.
    return last.to === text.length && last.length === 0 && last.number > 1 ? count - 1 : count;
  };
  let added = 0;
  let removed = 0;
  for (const c of hunks) {
    added += lines(proposal, c.fromB, c.toB);
    removed += lines(old, c.fromA, c.toA);
  }
  return { added, removed };
}
