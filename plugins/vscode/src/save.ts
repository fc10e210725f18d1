// Saving what an agent asks to have saved, but never over what others have written.
import { readFile, stat } from "node:fs/promises";
import * as vscode from "vscode";

/** What each file was when its document last held the same text; undefined where that is not known. */
const stamps = new Map<string, Promise<string | undefined>>();

const largest = 16 << 20; // bytes of a file that is compared with its document

async function stamp(path: string): Promise<string | undefined> {
  try {
    const s = await stat(path, { bigint: true });
    return `${s.ino} ${s.size} ${s.mtimeNs}`;
  } catch {
    return undefined;
  }
}

/** Whether a file may hold this text. A file that is large, or not UTF-8, may. */
async function holds(path: string, text: string): Promise<boolean> {
  try {
    if ((await stat(path)).size > largest) return true;
    const data = new TextDecoder("utf-8", { fatal: true }).decode(await readFile(path));
    return data.includes("\0") || lines(data) === lines(text);
  } catch {
    return true;
  }
}

function lines(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

function note(document: vscode.TextDocument): void {
  if (document.uri.scheme !== "file" || document.isDirty) return;
  const [key, path, text] = [document.uri.toString(), document.uri.fsPath, document.getText()];
  const before = stamps.get(key);
  stamps.set(key, stamp(path).then(async (now) => ((await holds(path, text)) ? now : before))); // an event comes late: others may have written since
}

/** Remembers what the files of documents without unsaved changes are, until it is disposed. */
export function watch(): vscode.Disposable {
  vscode.workspace.textDocuments.forEach(note);
  return vscode.Disposable.from(
    vscode.workspace.onDidOpenTextDocument(note),
    vscode.workspace.onDidSaveTextDocument(note),
    vscode.workspace.onDidChangeTextDocument((e) => note(e.document)), // read again from the disk, or all changes undone
    vscode.workspace.onDidCloseTextDocument((d) => stamps.delete(d.uri.toString())),
  );
}

/**
 * pollux/saveDocument: writes the user's unsaved changes, unless others have written the file since. VS Code looks for that as well, but asks the
 * user, or overwrites where its settings say so.
 */
export async function save(uri: vscode.Uri): Promise<{ saved: boolean; why?: string }> {
  const key = uri.toString();
  await vscode.commands.getCommands(true); // the window answers behind what the user has typed, which this process may not have heard of
  const document = vscode.workspace.textDocuments.find((d) => d.uri.toString() === key);
  if (!document) return { saved: false, why: "it is not open in the editor" };
  if (!document.isDirty) return { saved: true };
  const was = await stamps.get(key);
  if (was === undefined || was !== (await stamp(uri.fsPath))) return { saved: false, why: "it has changed on disk since the editor read it" };
  return (await document.save()) ? { saved: true } : { saved: false, why: "VS Code did not save it" };
}
