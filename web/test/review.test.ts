import assert from "node:assert/strict";
import { test } from "node:test";
import { plain } from "../src/core/paths";
import { DeskKeeper, readDesk, without, type Desk } from "../src/files/drafts";
import { Documents } from "../src/files/documents";
import { Connection } from "../src/net/connection";
import { Code, type DiffInfo, type FileContent } from "../src/net/protocol";
import { Diffs, type Closing } from "../src/review/diffs";
import { EditorState } from "@codemirror/state";
import { FakeSocket, settle } from "./fakes";

Object.assign(globalThis, { window: globalThis });

async function connected() {
  const socket = new FakeSocket();
  const connection: Connection = new Connection({ dial: () => socket, greet: async () => void (await connection.request("hello", { clientId: "me" })) });
  connection.connect();
  socket.onopen?.();
  await settle();
  const asked = (method: string) => socket.sent.filter((m) => m.method === method);
  return { socket, connection, asked, end: () => socket.onclose?.({ code: 4401, reason: "" }) };
}

const info: DiffInfo = { id: "d1", path: "/w/a.txt", filePath: "/w/a.txt", isNew: false, title: "", owner: "CLI", opened: 0, edited: false };
const texts = { ...info, old: "old\n", new: "new\n", text: "new\n", version: 1 };

async function proposal() {
  const t = await connected();
  const diffs = new Diffs(t.connection, "me");
  const closings: Closing[] = [];
  diffs.closed.on((c) => closings.push(c));
  diffs.sync([info], false);
  const [diff] = diffs.list;
  assert.ok(diff);
  return { ...t, diffs, diff, closings };
}

test("edits that the companion never heard of are handed over when their proposal goes", async () => {
  const t = await proposal();
  t.socket.answers["diff/read"] = texts;
  await t.diffs.read(t.diff);
  t.diff.current = () => "my words\n";
  t.diff.touch(9);
  t.end();
  t.diffs.sync([], false);
  assert.deepEqual(t.closings.map((c) => [c.outcome, c.lost]), [["decided elsewhere", "my words\n"]]);
});

test("edits that were sent are no loss, and a page that goes sends what waits", async () => {
  const t = await proposal();
  t.socket.answers["diff/read"] = texts;
  await t.diffs.read(t.diff);
  t.diff.current = () => "my words\n";
  t.diff.touch(9);
  t.diffs.sendAll();
  assert.deepEqual(t.asked("diff/edit").map((m) => (m.params as { text: string }).text), ["my words\n"]);
  t.diffs.sync([], false);
  assert.equal(t.closings[0]?.lost, null);
  t.end();
});

test("another page's edit that overtakes the texts is not lost", async () => {
  const t = await proposal();
  const read = t.diffs.read(t.diff);
  t.socket.push({ method: "diff/text", params: { id: "d1", text: "theirs\n", version: 2, clientId: "other" } });
  await settle();
  t.socket.push({ id: t.asked("diff/read")[0]?.id, result: texts });
  assert.equal((await read).text, "theirs\n");
  t.end();
});

test("an update that lacks what was typed here is left alone; the next one has it", async () => {
  const t = await proposal();
  t.socket.answers["diff/read"] = { ...texts, base: 0, others: 0 };
  await t.diffs.read(t.diff);
  const arrived: string[] = [];
  t.diffs.textArrived.on(({ text }) => arrived.push(text));
  t.diff.current = () => "mine\n";
  t.diff.touch(5);
  t.diffs.sendAll();
  const push = (method: string, edit: number, version: number, more: object) => t.socket.push({ method, params: { id: "d1", version, edit, text: `${method} ${edit}`, clientId: "", ...more } });
  push("diff/text", 0, 2, {});
  push("diff/base", 0, 3, { isNew: false, old: "newer\n", base: 1, others: 0 });
  await settle();
  assert.deepEqual(arrived, []);
  assert.equal(t.diff.texts?.old, "newer\n", "the file is shown at once");
  assert.equal(t.diff.texts?.version, 1, "and what the text is made for stays");
  push("diff/text", 1, 4, {});
  push("diff/text", 1, 3, {}); // overtaken on its way
  await settle();
  assert.deepEqual(arrived, ["diff/text 1"]);
  assert.deepEqual(t.asked("diff/edit").map((m) => (m.params as { edit: number }).edit), [1]);
  t.end();
});

test("looks at the disk take turns: an older answer does not overtake a newer one", async () => {
  const t = await connected();
  const file = (content: string, version: string): FileContent => ({ path: "/w/a", content, version, eol: "lf", bom: false, finalNewline: true, readOnly: false });
  t.socket.answers["file/read"] = file("one\n", "1");
  const documents = new Documents(t.connection, (_path, doc) => EditorState.create({ doc }));
  const doc = await documents.open("/w/a");
  delete t.socket.answers["file/read"];
  const looks = [documents.refresh(doc), documents.refresh(doc)];
  await settle();
  assert.equal(t.asked("file/read").length, 2, "the second look waits for the first");
  t.socket.push({ id: t.asked("file/read")[1]?.id, result: file("two\n", "2") });
  await settle();
  t.socket.push({ id: t.asked("file/read")[2]?.id, result: file("three\n", "3") });
  await Promise.all(looks);
  assert.equal(doc.state.doc.toString(), "three\n");
  t.end();
});

test("a draft comes back whatever has become of its file, but not without a connection", async () => {
  const t = await connected();
  const documents = new Documents(t.connection, (_path, doc) => EditorState.create({ doc }));
  const draft = { path: "/w/a", text: "mine\n", version: "1" };
  const opening = documents.open("/w/a", draft);
  await settle();
  t.socket.push({ id: t.asked("file/read")[0]?.id, error: { code: Code.binary, message: "binary" } });
  const doc = await opening;
  assert.equal(doc.state.doc.toString(), "mine\n");
  assert.ok(doc.dirty && doc.conflict);
  t.end();
  await assert.rejects(documents.open("/w/b", draft), { code: Code.offline });
});

test("what has not been brought back yet is kept for the next page", () => {
  const kept = new Map<string, string>();
  Object.assign(globalThis, { sessionStorage: { getItem: (k: string) => kept.get(k) ?? null, setItem: (k: string, v: string) => void kept.set(k, v) } });
  let waiting: Desk = {
    open: [{ path: "/w/a", head: 1, scrollTop: 0 }, { path: "/w/b", head: 2, scrollTop: 0 }],
    active: "/w/b",
    drafts: [{ path: "/w/a", text: "mine", version: "1" }],
  };
  const keeper = new DeskKeeper(() => [], () => "", () => waiting);
  keeper.write();
  assert.deepEqual(readDesk(), waiting);
  waiting = without(waiting, "/w/a");
  keeper.write();
  assert.deepEqual(readDesk(), { open: [{ path: "/w/b", head: 2, scrollTop: 0 }], active: "/w/b", drafts: [] });
});

test("names that would deceive are spelled out, others are left alone", () => {
  assert.equal(plain("evil\u202egnp.exe"), "evil‹U+202E›gnp.exe");
  assert.equal(plain("a\nb\tc"), "a␊b␉c");
  assert.equal(plain(" a b "), "␠a b␠");
  assert.equal(plain("zero\u200bwidth\ufeff"), "zero‹U+200B›width‹U+FEFF›");
  for (const name of ["Größe 🎈.txt", "עברית.txt", "👨‍👩‍👧.md", "می‌خواهم", "<b>.html"]) assert.equal(plain(name), name);
});

async function opened(content: string) {
  const t = await connected();
  const file = (text: string, version: string): FileContent => ({ path: "/w/sub/a", content: text, version, eol: "lf", bom: false, finalNewline: true, readOnly: false });
  t.socket.answers["file/read"] = file(content, "1");
  const documents = new Documents(t.connection, (_path, doc) => EditorState.create({ doc }));
  const doc = await documents.open("/w/sub/a");
  delete t.socket.answers["file/read"];
  const look = async (answer: object) => {
    const done = documents.refresh(doc);
    await settle();
    t.socket.push({ id: t.asked("file/read").at(-1)?.id, ...answer });
    await done;
  };
  return { ...t, documents, doc, file, look };
}

test("a file that was gone and is back as it was is no conflict any more", async () => {
  const t = await opened("one\n");
  await t.look({ error: { code: Code.notFound, message: "no such file" } });
  assert.deepEqual(t.doc.conflict, { disk: null });
  await t.look({ result: t.file("one\n", "1") });
  assert.equal(t.doc.conflict, null);
  t.end();
});

test("a file that cannot be read any more is said to be so, and its text is kept", async () => {
  const t = await opened("one\n");
  await t.look({ error: { code: Code.binary, message: "not text" } });
  assert.deepEqual(t.doc.conflict, { disk: null, why: "not text" });
  assert.equal(t.doc.state.doc.toString(), "one\n");
  await t.look({ result: t.file("two\n", "2") });
  assert.equal(t.doc.conflict, null);
  assert.equal(t.doc.state.doc.toString(), "two\n");
  t.end();
});

test("saving a file again whose folder has gone makes the folder; a refusal is told", async () => {
  const t = await opened("one\n");
  const saving = t.documents.save(t.doc, true);
  await settle();
  t.socket.push({ id: t.asked("file/save")[0]?.id, error: { code: Code.notFound, message: "no such folder" } });
  await settle();
  assert.deepEqual(t.asked("file/create")[0]?.params, { path: "/w/sub", dir: true });
  t.socket.push({ id: t.asked("file/create")[0]?.id, result: {} });
  await settle();
  t.socket.push({ id: t.asked("file/save")[1]?.id, result: { version: "2" } });
  assert.equal(await saving, true);
  const refused = t.documents.save(t.doc, true);
  await settle();
  t.socket.push({ id: t.asked("file/save")[2]?.id, error: { code: Code.changedOnDisk, message: "a folder stands there" } });
  await assert.rejects(refused, /a folder/);
  t.end();
});
