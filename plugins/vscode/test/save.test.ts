// Saving for an agent, when VS Code tells late what it has done (SPEC CC-17).
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import * as vscode from "vscode";
import { save, watch } from "../src/save";

const events = vscode.workspace as any;

/** A file and its document, which is open. */
function opened(t: TestContext, content: string | Buffer, text: string): { file: string; document: any; saves: () => Promise<{ saved: boolean; why?: string }> } {
  const dir = mkdtempSync(join(tmpdir(), "pollux-save-"));
  const file = join(dir, "a.txt");
  writeFileSync(file, content);
  const uri: any = { scheme: "file", fsPath: file, toString: () => `file://${file}` };
  const document = {
    uri,
    text,
    isDirty: false,
    getText: () => document.text,
    save: async () => (writeFileSync(file, document.text), (document.isDirty = false), true),
  };
  events.textDocuments = [document];
  const watching = watch();
  t.after(() => {
    watching.dispose();
    rmSync(dir, { recursive: true, force: true });
  });
  return { file, document, saves: () => save(uri) };
}

function types(document: any, text: string): void {
  document.text = text + document.text;
  events.onDidChangeTextDocument.fire({ document }); // VS Code says after the first key's event that there are unsaved changes
  document.isDirty = true;
}

test("the user's changes are saved", async (t) => {
  const { file, document, saves } = opened(t, "\uFEFFone\r\n", "one\r\n");
  types(document, "mine ");
  assert.deepEqual(await saves(), { saved: true });
  assert.equal(readFileSync(file, "utf8"), "mine one\r\n");
});

test("what is not UTF-8 is saved", async (t) => {
  const { document, saves } = opened(t, Buffer.from([0xe4, 10]), "ä\n");
  types(document, "mine ");
  assert.deepEqual(await saves(), { saved: true });
});

test("what others wrote stands, also when it came before VS Code told of the last save", async (t) => {
  const { file, document, saves } = opened(t, "one\n", "one\n");
  types(document, "mine ");
  await document.save();
  writeFileSync(file, "the text of others\n");
  events.onDidSaveTextDocument.fire(document);
  types(document, "more ");
  assert.match((await saves()).why ?? "saved", /changed on disk/);
  assert.equal(readFileSync(file, "utf8"), "the text of others\n");
});
