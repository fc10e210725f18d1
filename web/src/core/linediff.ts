import { Change, diff } from "@codemirror/merge";
import { commonEnds } from "./ends";

/** Some of a text's lines, each a number that equal lines share; `starts[i]` is where line i begins, with one more for the end. */
interface Lines {
  ids: Int32Array;
  starts: Int32Array;
}

/** Half-open ranges of lines that differ. */
interface Range {
  fromA: number;
  toA: number;
  fromB: number;
  toB: number;
}

/** The longest edit script, in lines, that is looked for exactly; beyond it lines that occur once split the problem. */
const maxEdits = 600;
/** A changed block larger than this, in UTF-16 units of both sides, is not compared by characters; a single line only from its ends. */
const maxBlock = 40_000;
/** What comparing by characters may take in all, in milliseconds. */
const refineTime = 250;

function cut(text: string, from: number, to: number, known: Map<string, number>): Lines {
  const starts: number[] = [];
  const ids: number[] = [];
  for (let at = from; at < to; ) {
    const end = text.indexOf("\n", at);
    const next = end < 0 ? to : end + 1;
    const line = text.slice(at, next);
    let id = known.get(line);
    if (id === undefined) known.set(line, (id = known.size));
    starts.push(at);
    ids.push(id);
    at = next;
  }
  starts.push(to);
  return { ids: Int32Array.from(ids), starts: Int32Array.from(starts) };
}

/**
 * What differs between two texts, as @codemirror/merge counts it: first by lines, then by characters within what
 * changed. Its time is bounded for any input: repetitive, enormous or altogether different texts give a coarser
 * answer, never a late one.
 */
export function lineDiff(a: string, b: string): readonly Change[] {
  const ends = commonEnds(a, b);
  const from = ends.start === 0 ? 0 : a.lastIndexOf("\n", ends.start - 1) + 1;
  const lastLines = a.indexOf("\n", a.length - ends.end) + 1;
  const toA = lastLines === 0 ? a.length : lastLines;
  const known = new Map<string, number>();
  const linesA = cut(a, from, toA, known);
  const linesB = cut(b, from, b.length - (a.length - toA), known);
  const ranges: Range[] = [];
  compare(linesA.ids, linesB.ids, { fromA: 0, toA: linesA.ids.length, fromB: 0, toB: linesB.ids.length }, ranges, 0);
  const end = Date.now() + refineTime;
  return ranges.flatMap((r) => refine(a, b, charRange(linesA, linesB, r), r.toA - r.fromA === 1 && r.toB - r.fromB === 1, end));
}

function charRange(a: Lines, b: Lines, r: Range): Change {
  return new Change(a.starts[r.fromA] ?? 0, a.starts[r.toA] ?? 0, b.starts[r.fromB] ?? 0, b.starts[r.toB] ?? 0);
}

function refine(a: string, b: string, c: Change, oneLine: boolean, end: number): readonly Change[] {
  const lengthA = c.toA - c.fromA;
  const lengthB = c.toB - c.fromB;
  const large = lengthA + lengthB > maxBlock;
  if (lengthA === 0 || lengthB === 0 || (large && !oneLine) || Date.now() > end) return [c];
  const oldPart = a.slice(c.fromA, c.toA);
  const newPart = b.slice(c.fromB, c.toB);
  if (large) {
    const { start, end: same } = commonEnds(oldPart, newPart);
    return [new Change(c.fromA + start, c.toA - same, c.fromB + start, c.toB - same)];
  }
  const inner = diff(oldPart, newPart, { scanLimit: 500, timeout: 50 });
  return inner.map((i) => new Change(c.fromA + i.fromA, c.fromA + i.toA, c.fromB + i.fromB, c.fromB + i.toB));
}

/** Appends the differing ranges within `r`, in order. */
function compare(a: Int32Array, b: Int32Array, r: Range, out: Range[], depth: number): void {
  let { fromA, toA, fromB, toB } = r;
  while (fromA < toA && fromB < toB && a[fromA] === b[fromB]) fromA++, fromB++;
  while (toA > fromA && toB > fromB && a[toA - 1] === b[toB - 1]) toA--, toB--;
  const rest = { fromA, toA, fromB, toB };
  if (fromA === toA && fromB === toB) return;
  if (fromA === toA || fromB === toB) {
    out.push(rest);
    return;
  }
  if (shortest(a, b, rest, out)) return;
  const anchors = depth < 8 ? uniqueAnchors(a, b, rest) : [];
  if (anchors.length === 0) {
    out.push(rest);
    return;
  }
  let atA = fromA;
  let atB = fromB;
  for (const [i, j] of anchors) {
    compare(a, b, { fromA: atA, toA: i, fromB: atB, toB: j }, out, depth + 1);
    atA = i + 1;
    atB = j + 1;
  }
  compare(a, b, { fromA: atA, toA, fromB: atB, toB }, out, depth + 1);
}

/** Myers' shortest edit script, greedy and forward; false when it is longer than maxEdits. */
function shortest(a: Int32Array, b: Int32Array, r: Range, out: Range[]): boolean {
  const n = r.toA - r.fromA;
  const m = r.toB - r.fromB;
  const limit = Math.min(n + m, maxEdits);
  if (Math.abs(n - m) > limit) return false;
  const reach = new Int32Array(2 * limit + 3);
  const middle = limit + 1;
  const trace: Int32Array[] = [];
  for (let d = 0; d <= limit; d++) {
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reach[middle + k - 1] ?? 0) < (reach[middle + k + 1] ?? 0));
      let x = down ? (reach[middle + k + 1] ?? 0) : (reach[middle + k - 1] ?? 0) + 1;
      while (x < n && x - k < m && a[r.fromA + x] === b[r.fromB + x - k]) x++;
      reach[middle + k] = x;
      if (x >= n && x - k >= m) {
        backtrack(r, n, m, d, trace, out);
        return true;
      }
    }
    trace.push(reach.slice(middle - d - 1, middle + d + 2));
  }
  return false;
}

/** Walks an edit script backwards and appends its steps, joined to ranges, in order. */
function backtrack(r: Range, n: number, m: number, edits: number, trace: Int32Array[], out: Range[]): void {
  const steps: Range[] = [];
  let x = n;
  let y = m;
  for (let d = edits; d > 0; d--) {
    const before = trace[d - 1];
    if (!before) break;
    const reach = (k: number) => before[k + d] ?? 0;
    const k = x - y;
    const down = k === -d || (k !== d && reach(k - 1) < reach(k + 1));
    const startX = down ? reach(k + 1) : reach(k - 1);
    const startY = startX - (down ? k + 1 : k - 1);
    const step = { fromA: startX, toA: down ? startX : startX + 1, fromB: startY, toB: down ? startY + 1 : startY };
    const last = steps.at(-1);
    if (last && last.fromA === step.toA && last.fromB === step.toB) {
      last.fromA = step.fromA;
      last.fromB = step.fromB;
    } else {
      steps.push(step);
    }
    x = startX;
    y = startY;
  }
  for (const s of steps.reverse()) out.push({ fromA: r.fromA + s.fromA, toA: r.fromA + s.toA, fromB: r.fromB + s.fromB, toB: r.fromB + s.toB });
}

/** Pairs of lines that occur once on either side, the longest rising row of them (patience). */
function uniqueAnchors(a: Int32Array, b: Int32Array, r: Range): [number, number][] {
  const once = (ids: Int32Array, from: number, to: number) => {
    const places = new Map<number, number>();
    for (let i = from; i < to; i++) places.set(ids[i] ?? 0, places.has(ids[i] ?? 0) ? -1 : i);
    return places;
  };
  const inB = once(b, r.fromB, r.toB);
  const pairs: [number, number][] = [];
  for (const [id, i] of once(a, r.fromA, r.toA)) {
    const j = inB.get(id);
    if (i >= 0 && j !== undefined && j >= 0) pairs.push([i, j]);
  }
  pairs.sort((p, q) => p[0] - q[0]);
  return longestRising(pairs);
}

function longestRising(pairs: [number, number][]): [number, number][] {
  const tails: number[] = [];
  const previous = new Int32Array(pairs.length).fill(-1);
  pairs.forEach(([, j], at) => {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((pairs[tails[mid] ?? 0]?.[1] ?? 0) < j) low = mid + 1;
      else high = mid;
    }
    if (low > 0) previous[at] = tails[low - 1] ?? -1;
    tails[low] = at;
  });
  const out: [number, number][] = [];
  for (let at = tails.at(-1) ?? -1; at >= 0; at = previous[at] ?? -1) {
    const pair = pairs[at];
    if (pair) out.push(pair);
  }
  return out.reverse();
}
