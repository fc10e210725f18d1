import assert from "node:assert/strict";
import { test } from "node:test";
import { Chunk } from "@codemirror/merge";
import { Text } from "@codemirror/state";
import { applyChanges, minimalChanges } from "../src/core/changes";
import { commonEnds, withEnds } from "../src/core/ends";
import { lineDiff } from "../src/core/linediff";
import { isHuge } from "../src/editor/setup";
import { countLines, hunkAt, nextHunk, revertHunk, type Hunk } from "../src/review/hunks";

/** A small generator with a seed, so that a failure can be had again. */
function random(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

function randomText(next: (n: number) => number, lines: number): string {
  const words = ["a", "b", "x\u0301", "😀", "", "  ", "func", "}", "日本"];
  const out: string[] = [];
  for (let i = 0; i < lines; i++) out.push(Array.from({ length: next(4) }, () => words[next(words.length)]).join(" "));
  return out.join("\n") + (next(2) ? "\n" : "");
}

test("minimal changes give the new text, for any pair of texts", () => {
  const next = random(7);
  for (let i = 0; i < 2000; i++) {
    const a = randomText(next, next(12));
    const b = randomText(next, next(12));
    assert.equal(applyChanges(a, minimalChanges(a, b)), b, JSON.stringify([a, b]));
  }
});

test("minimal changes leave alone what did not change", () => {
  const a = "one\ntwo\nthree\nfour\nfive\n";
  const changes = minimalChanges(a, "one\nTWO\nthree\nfour\nfive!\n");
  assert.deepEqual(changes.map((c) => a.slice(c.from, c.to)), ["two", ""]);
  assert.deepEqual(minimalChanges(a, a), []);
});

test("common ends never split a surrogate pair", () => {
  const { start, end } = commonEnds("x😀y", "x😁y");
  assert.deepEqual([start, end], [1, 1]);
});

test("line diff is exact and ordered, for any pair of texts", () => {
  const next = random(11);
  for (let i = 0; i < 2000; i++) {
    const a = randomText(next, next(30));
    const b = randomText(next, next(30));
    let at = 0;
    let out = "";
    for (const c of lineDiff(a, b)) {
      assert.ok(c.fromA >= at);
      out += a.slice(at, c.fromA) + b.slice(c.fromB, c.toB);
      at = c.toA;
    }
    assert.equal(out + a.slice(at), b);
  }
});

test("a text comes whole from its ends and its middle, for any pair of texts", () => {
  const next = random(5);
  for (let i = 0; i < 2000; i++) {
    const a = randomText(next, next(12));
    const b = randomText(next, next(12));
    const ends = commonEnds(a, b);
    assert.equal(withEnds(a, b.slice(ends.start, b.length - ends.end), ends), b, JSON.stringify([a, b]));
  }
  assert.equal(withEnds("a", "b", undefined), "b");
});

test("line diff of one huge line is quick and shows what changed in it", () => {
  const old = `[${'{"key": "värde ☃"}, '.repeat(250_000)}]\n`;
  const started = Date.now();
  for (const [a, b, changed] of [
    [old, old.replace("key", "KEY"), "KEY"],
    [`first\n${old}last\n`, `first\n${old.slice(0, 4_000_000)}NEW${old.slice(4_000_000)}last\n`, "NEW"],
    [old, old.slice(0, 100) + old.slice(110), ""],
    [old, `${old}more\n`, "more\n"],
    [`x${old}`, `y${old.slice(0, -3)}z`, ""],
  ] as const) {
    const found = lineDiff(a, b);
    assert.equal(found.length, 1);
    if (!a.startsWith("x")) assert.equal(b.slice(found[0]?.fromB, found[0]?.toB), changed);
  }
  assert.ok(Date.now() - started < 4000, `took ${Date.now() - started} ms`);
});

test("line diff of large, repetitive and scattered texts is quick and small (F-5)", () => {
  const line = "The quick brown fox jumps over the lazy dog 0123456789 and then some\n";
  const big = line.repeat(70_000);
  const lines = big.split("\n");
  const scattered = lines.map((l, i) => (i % 997 === 0 ? l.replace("fox", `cat ${i}`) : l)).join("\n");
  const unique = lines.map((l, i) => `${i} ${l}`).join("\n");
  const manyEdits = unique.split("\n").map((l, i) => (i % 20 === 0 ? `${l}!` : l)).join("\n");
  const started = Date.now();
  assert.ok(lineDiff(big, `${big.replace("quick", "slow")}end\n`).length <= 8);
  assert.ok(lineDiff(big, scattered).length >= 70);
  assert.ok(lineDiff(unique, manyEdits).length > 3000);
  assert.equal(lineDiff(big, "x\n").length, 1);
  assert.ok(Date.now() - started < 6000, `took ${Date.now() - started} ms`);
});

function chunks(a: string, b: string): readonly Hunk[] {
  return Chunk.build(Text.of(a.split("\n")), Text.of(b.split("\n")), { override: lineDiff });
}

test("reverting every hunk brings the old text back, byte for byte (F-6)", () => {
  const next = random(3);
  for (let i = 0; i < 2000; i++) {
    const a = randomText(next, next(10));
    let b = randomText(next, next(10));
    const what = JSON.stringify([a, b]);
    for (let round = 0; round < 40 && b !== a; round++) {
      const hunk = chunks(a, b)[0];
      assert.ok(hunk, what);
      b = applyChanges(b, [revertHunk(hunk, Text.of(a.split("\n")), Text.of(b.split("\n")))]);
    }
    assert.equal(b, a, what);
  }
});

test("navigation goes around the ends and can leave out what was agreed to", () => {
  const hunks: Hunk[] = [
    { fromA: 0, toA: 3, fromB: 0, toB: 3 },
    { fromA: 10, toA: 12, fromB: 10, toB: 10 },
    { fromA: 20, toA: 20, fromB: 20, toB: 25 },
  ];
  assert.equal(hunkAt(hunks, 10), 1);
  assert.equal(hunkAt(hunks, 5), -1);
  assert.equal(nextHunk(hunks, 0, 1), 1);
  assert.equal(nextHunk(hunks, 5, 1), 1);
  assert.equal(nextHunk(hunks, 5, -1), 0);
  assert.equal(nextHunk(hunks, 22, 1), 0);
  assert.equal(nextHunk(hunks, 0, -1), 2);
  assert.equal(nextHunk(hunks, 30, 1), 0);
  assert.equal(nextHunk(hunks, 0, 1, (h) => h.fromB === 10), 2);
  assert.equal(nextHunk([], 0, 1), -1);
});

test("added and removed lines are counted", () => {
  const a = "1\n2\n3\n";
  const b = "1\ntwo\n3\n4\n5\n";
  assert.deepEqual(countLines(chunks(a, b), Text.of(a.split("\n")), Text.of(b.split("\n"))), { added: 3, removed: 1 });
  assert.deepEqual(countLines(chunks("", "x\ny\n"), Text.empty, Text.of(["x", "y", ""])), { added: 2, removed: 0 });
});

test("a text is plain by its length, its longest line, or both texts' length", () => {
  const line = "x".repeat(29_000);
  assert.equal(isHuge(""), false);
  assert.equal(isHuge(`${line}\n${line}\n${line}`), false);
  assert.equal(isHuge("x".repeat(31_000)), true);
  assert.equal(isHuge(`a\n${"x".repeat(31_000)}\nb`), true);
  assert.equal(isHuge(`a\nb\n${"x".repeat(31_000)}`), true);
  assert.equal(isHuge("a", "x".repeat(31_000)), true);
  assert.equal(isHuge("a\n".repeat(300_000), "b\n".repeat(300_000)), true);
  assert.equal(isHuge("a\n".repeat(300_000)), false);
});
