import { commonEnds } from "./ends";
import { lineDiff } from "./linediff";

/** One replacement: the text between the offsets `from` and `to` (UTF-16 units of the old text) becomes `insert`. */
export interface Replacement {
  from: number;
  to: number;
  insert: string;
}

/**
 * The few replacements that turn `a` into `b`, in order and not overlapping, so that cursors, selections and undo
 * history outside of what changed stay where they are. Empty when the texts are equal.
 */
export function minimalChanges(a: string, b: string): Replacement[] {
  if (a === b) return [];
  const { start, end } = commonEnds(a, b);
  if (start + end === Math.min(a.length, b.length)) {
    return [{ from: start, to: a.length - end, insert: b.slice(start, b.length - end) }];
  }
  return lineDiff(a, b).map((c) => ({ from: c.fromA, to: c.toA, insert: b.slice(c.fromB, c.toB) }));
}

/** Carries replacements out; the reference that tests and texts without an editor use. */
export function applyChanges(text: string, changes: readonly Replacement[]): string {
  let out = "";
  let at = 0;
  for (const c of changes) {
    out += text.slice(at, c.from) + c.insert;
    at = c.to;
  }
  return out + text.slice(at);
}
