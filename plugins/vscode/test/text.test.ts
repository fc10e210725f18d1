// Texts keep every byte on their way through a document of VS Code (SPEC F-8).
import assert from "node:assert/strict";
import { test } from "node:test";
import { change, encode, restore, same, unfit } from "../src/text";

/** What VS Code makes of the bytes of a file: no mark, and one kind of line end. */
function document(bytes: Uint8Array, eol?: string): string {
  const text = new TextDecoder().decode(bytes);
  const crlf = (text.match(/\r\n/g) ?? []).length;
  const all = (text.match(/\r\n|\r|\n/g) ?? []).length;
  return text.replace(/\r\n|\r|\n/g, eol ?? (crlf > all / 2 ? "\r\n" : "\n"));
}

/** Numbers that are the same in each run. */
function numbers(seed: number): (below: number) => number {
  let x = seed;
  return (below) => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return Math.floor((x / 2 ** 32) * below);
  };
}

function random(below: (n: number) => number): string {
  const pieces = ["a", "bc", "", " ", "🎈", "é", "\n", "\n", "\r\n", "\r\n", "\r", "\uFEFF"];
  return (below(4) === 0 ? "\uFEFF" : "") + Array.from({ length: below(12) }, () => pieces[below(pieces.length - 1)]!).join("");
}

test("what nobody edits comes back byte for byte", () => {
  const below = numbers(1);
  for (let i = 0; i < 5_000; i++) {
    const text = random(below);
    for (const eol of [undefined, "\n", "\r\n"]) {
      const shown = document(encode(text), eol);
      assert.ok(same(shown, text), JSON.stringify(text));
      assert.equal(restore(shown, text), text, JSON.stringify({ text, eol }));
    }
  }
});

test("an edited line leaves the ends of all other lines alone", () => {
  const text = "\uFEFFone\r\ntwo\nthree\rfour\r\nfive";
  const cases: [string, string][] = [
    ["one\ntwo!\nthree\nfour\nfive", "\uFEFFone\r\ntwo!\nthree\rfour\r\nfive"],
    ["one\ntwo\nnew\nthree\nfour\nfive", "\uFEFFone\r\ntwo\nnew\r\nthree\rfour\r\nfive"],
    ["one\ntwo\nfour\nfive", "\uFEFFone\r\ntwo\nfour\r\nfive"],
    ["one\ntwo\nthree\nfour\nfive\n", "\uFEFFone\r\ntwo\nthree\rfour\r\nfive\r\n"],
    ["", "\uFEFF"],
    ["one", "\uFEFFone"],
  ];
  for (const [edited, want] of cases) assert.equal(restore(edited, text), want);
});

test("an edited text has exactly the lines of the document", () => {
  const below = numbers(2);
  for (let i = 0; i < 5_000; i++) {
    const [text, other] = [random(below), random(below)];
    const edited = document(encode(other));
    const got = restore(edited, text);
    assert.ok(same(edited, got), JSON.stringify({ text, other, got }));
    assert.equal(got.startsWith("\uFEFF"), text.startsWith("\uFEFF") || edited.startsWith("\uFEFF"));
  }
});

test("a change makes one text of the other, and cuts no character", () => {
  const below = numbers(3);
  for (let i = 0; i < 5_000; i++) {
    const [from, to] = [random(below), below(3) === 0 ? "🎉🎈" : random(below)];
    const c = change(from, to);
    assert.equal(from.slice(0, c.start) + c.with + from.slice(c.end), to, JSON.stringify({ from, to, c }));
    assert.doesNotThrow(() => encodeURIComponent(c.with), JSON.stringify({ from, to, c })); // no half of a pair
  }
  assert.deepEqual(change("a🎈b", "a🎉b"), { start: 1, end: 3, with: "🎉" });
  assert.deepEqual(change("same", "same"), { start: 4, end: 4, with: "" });
});

test("what VS Code cannot hold is refused", () => {
  assert.equal(unfit("a\0b")?.code, -32002);
  assert.equal(unfit("text"), undefined);
});
