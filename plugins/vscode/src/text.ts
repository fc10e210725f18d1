// Texts of pollux in documents of VS Code, byte for byte.
//
// A document has one kind of line end and no byte order mark. A text may have
// several kinds, and the mark: both are put back when the document is read.

const ends = /\r\n|\r|\n/g;
const mark = "\uFEFF";

/** Why a document cannot hold a text, undefined when it can. */
export function unfit(text: string): { code: number; message: string } | undefined {
  if (text.includes("\0")) return { code: -32002, message: "VS Code shows no text with NUL bytes" };
  if (text.length > 45 << 20) return { code: -32003, message: "VS Code hands no text of more than 50 MB to an extension" };
  return undefined;
}

/** The bytes of a file for a document with text. They always begin with a mark, so that no setting of the user's changes the encoding. */
export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(mark + unmarked(text));
}

function unmarked(text: string): string {
  return text.startsWith(mark) ? text.slice(1) : text;
}

/** Whether a document that holds edited shows text. */
export function same(edited: string, text: string): boolean {
  return edited.replace(ends, "\n") === unmarked(text).replace(ends, "\n");
}

/** The text of a document that was filled with original: lines that are the same at its start and its end keep their line ends, others get the most frequent one. */
export function restore(edited: string, original: string): string {
  const from = unmarked(original).split(ends);
  const was = original.match(ends) ?? [];
  const to = edited.split(ends);
  const usual = frequent(was);
  const end = (i: number): string => was[i] ?? usual;
  const between = to.length - 1;
  let head = 0;
  let tail = 0;
  if (from.length === to.length) {
    head = between;
  } else {
    const most = Math.min(was.length, between);
    while (head < most && from[head] === to[head]) head++;
    while (tail < most - head && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail++;
  }
  const parts: string[] = [];
  for (const [i, line] of to.entries()) {
    parts.push(line);
    if (i < head) parts.push(end(i));
    else if (i < between) parts.push(i >= between - tail ? end(was.length - (between - i)) : usual);
  }
  const text = parts.join("");
  // A CR that has come to stand before a LF would be one line end with it.
  return (original.startsWith(mark) ? mark : "") + (same(edited, text) ? text : to.join(usual));
}

function frequent(list: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const end of list) counts.set(end, (counts.get(end) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "\n";
}

/** The least range of text, as offsets, whose replacement by with makes it become. No pair of surrogates is cut. */
export function change(text: string, become: string): { start: number; end: number; with: string } {
  const most = Math.min(text.length, become.length);
  let start = 0;
  while (start < most && text[start] === become[start]) start++;
  if (start > 0 && /[\uD800-\uDBFF\r]/.test(text[start - 1]!)) start--;
  let tail = 0;
  while (tail < most - start && text[text.length - 1 - tail] === become[become.length - 1 - tail]) tail++;
  if (tail > 0 && /[\uDC00-\uDFFF\n]/.test(text[text.length - tail]!)) tail--;
  return { start, end: text.length - tail, with: become.slice(start, become.length - tail) };
}
