import assert from "node:assert/strict";
import { test } from "node:test";
import { baseName, dirName, displayPath, isBelow, joinPath } from "../src/core/paths";
import { indentationOf } from "../src/editor/setup";
import { languageOf } from "../src/editor/languages";
import { TreeModel, treeKey, typeAhead } from "../src/files/treemodel";
import { activeRules, exactly, ruleSentence } from "../src/review/policy";

test("paths of either platform come apart and together", () => {
  assert.equal(baseName("/a/b.txt"), "b.txt");
  assert.equal(baseName("C:\\a\\b.txt"), "b.txt");
  assert.equal(dirName("/a/b"), "/a");
  assert.equal(dirName("/a"), "/");
  assert.equal(dirName("C:\\a\\b"), "C:\\a");
  assert.equal(joinPath("/", "a"), "/a");
  assert.equal(joinPath("C:\\x", "a"), "C:\\x\\a");
  assert.ok(isBelow("/a/b", "/a") && isBelow("/a", "/a") && !isBelow("/ab", "/a"));
});

test("a path is shown relative to the nearest root, led by its name when there are several", () => {
  const one = [{ path: "/w/app", name: "app" }];
  const two = [...one, { path: "/w/app/lib", name: "lib" }];
  assert.equal(displayPath("/w/app/x/y", one), "x/y");
  assert.equal(displayPath("/w/app", one), "app");
  assert.equal(displayPath("/w/app/lib/y", two), "lib/y");
  assert.equal(displayPath("/elsewhere", two), "/elsewhere");
});

function tree(): TreeModel {
  const model = new TreeModel();
  model.roots = [{ path: "/r", name: "r" }];
  model.setExpanded("/r", true);
  model.setListing("/r", [
    { name: "src", path: "/r/src", kind: "dir" },
    { name: "a.ts", path: "/r/a.ts", kind: "file" },
    { name: "b.ts", path: "/r/b.ts", kind: "file" },
  ]);
  model.setListing("/r/src", [{ name: "m.ts", path: "/r/src/m.ts", kind: "file" }]);
  return model;
}

test("the tree shows what stands open, with levels and places for screen readers", () => {
  const model = tree();
  assert.deepEqual(model.rows().map((r) => [r.name, r.level, r.position, r.size]), [["r", 1, 1, 1], ["src", 2, 1, 3], ["a.ts", 2, 2, 3], ["b.ts", 2, 3, 3]]);
  model.setExpanded("/r/src", true);
  assert.equal(model.rows()[2]?.path, "/r/src/m.ts");
  model.forget("/r/src");
  assert.equal(model.rows().length, 4);
  assert.ok(!model.isListed("/r/src"));
});

test("tree keys follow the tree pattern", () => {
  const model = tree();
  model.setExpanded("/r/src", true);
  const rows = model.rows();
  assert.deepEqual(treeKey("ArrowDown", rows, 0), { focus: 1 });
  assert.deepEqual(treeKey("ArrowUp", rows, 0), { focus: 0 });
  assert.deepEqual(treeKey("ArrowRight", rows, 1), { focus: 2 });
  assert.deepEqual(treeKey("ArrowLeft", rows, 2), { focus: 1 });
  assert.deepEqual(treeKey("ArrowLeft", rows, 1), { collapse: rows[1] });
  assert.deepEqual(treeKey("End", rows, 0), { focus: 4 });
  assert.deepEqual(treeKey("Enter", rows, 3), { activate: rows[3] });
  assert.equal(treeKey("x", rows, 0), null);
  assert.equal(typeAhead("b", rows, 0), 4);
  assert.equal(typeAhead("zz", rows, 0), -1);
});

test("an ask rule shows only as an exception from a wider one (F-11)", () => {
  assert.deepEqual(activeRules([{ mode: "ask", owner: "Gemini CLI #1" }]), []);
  const both = [{ mode: "terminal" as const }, { mode: "ask" as const, owner: "Gemini CLI #1" }];
  assert.equal(activeRules(both).length, 2);
  assert.equal(ruleSentence({ mode: "accept", owner: "Gemini CLI #2" }), "Accept without asking: from Gemini CLI #2");
  assert.equal(exactly("/w/a*b?[c].go"), "/w/a[*]b[?][c].go");
});

test("indentation is taken from the text", () => {
  assert.equal(indentationOf("a\n  b\n    c\n  d\n"), "  ");
  assert.equal(indentationOf("a {\n\tb\n}\n"), "\t");
  assert.equal(indentationOf("flat\n"), "    ");
});

test("languages are known by name or ending", () => {
  assert.equal(languageOf("/x/main.go")?.name, "Go");
  assert.equal(languageOf("C:\\x\\Dockerfile")?.name, "Dockerfile");
  assert.equal(languageOf("/x/README"), null);
});
