import { lineDiff } from "./linediff";

/** One replacement: the text between the offsets `from` and `to` (UTF-16 units of the old text) becomes `insert`. */
export interface Replacement {
  from: number;
  to: number;
  insert: string;
}

const isLow = (unit: number) => unit >= 0xdc00 && unit < 0xe000;

/** The lengths of what two texts have in common at their starts and ends, never splitting a surrogate pair. */
export function commonEnds(a: string, b: string): { start: number; end: number } {
  const limit = Math.min(a.length, b.length);
  let start = 0;
  while (start < limit && a.charCodeAt(start) === b.charCodeAt(start)) start++;
  if (start > 0 && (isLow(a.charCodeAt(start)) || isLow(b.charCodeAt(start)))) start--;
  let end = 0;
  while (end < limit - start && a.charCodeAt(a.length - 1 - end) === b.charCodeAt(b.length - 1 - end)) end++;
  if (end > 0 && isLow(a.charCodeAt(a.length - end))) end--;
  return { start, end };
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
