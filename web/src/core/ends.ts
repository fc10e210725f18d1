/** How many UTF-16 units two texts have in common at their starts and ends. */
export interface Ends {
  start: number;
  end: number;
}

const isLow = (unit: number) => unit >= 0xdc00 && unit < 0xe000;

/** What two texts have in common at their starts and ends, never splitting a surrogate pair. */
export function commonEnds(a: string, b: string): Ends {
  const limit = Math.min(a.length, b.length);
  let start = 0;
  while (start < limit && a.charCodeAt(start) === b.charCodeAt(start)) start++;
  if (start > 0 && (isLow(a.charCodeAt(start)) || isLow(b.charCodeAt(start)))) start--;
  let end = 0;
  while (end < limit - start && a.charCodeAt(a.length - 1 - end) === b.charCodeAt(b.length - 1 - end)) end++;
  if (end > 0 && isLow(a.charCodeAt(a.length - end))) end--;
  return { start, end };
}

/** A text that came without what it begins and ends with as `base` does. */
export function withEnds(base: string, rest: string, ends: Ends | undefined): string {
  return ends ? base.slice(0, ends.start) + rest + base.slice(base.length - ends.end) : rest;
}
