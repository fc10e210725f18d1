// What the user looks at: files, cursor, selections.
import * as vscode from "vscode";

const throttle = 50; // milliseconds, as the protocol has it
const most = 16_896; // UTF-16 units of a selection that are of use, as the protocol has it

interface Message {
  textDocument: { uri: string } | null;
  position?: vscode.Position;
  selection?: { start: vscode.Position; end: vscode.Position; text: string };
  openDocuments: string[];
}

function openDocuments(): string[] {
  const uris = new Set<string>();
  for (const tab of vscode.window.tabGroups.all.flatMap((group) => group.tabs)) {
    const uri = tab.input instanceof vscode.TabInputText ? tab.input.uri : tab.input instanceof vscode.TabInputTextDiff ? tab.input.modified : undefined;
    if (uri?.scheme === "file") uris.add(uri.toString());
  }
  return [...uris];
}

/** Selections in the order of the text. Several of them are one text, each on lines of its own. */
function selected(editor: vscode.TextEditor): Message["selection"] {
  const some = editor.selections.filter((s) => !s.isEmpty).sort((a, b) => a.start.compareTo(b.start));
  const [first, last] = [some[0], some.at(-1)];
  if (!first || !last) return undefined;
  return { start: first.start, end: last.end, text: some.map((s) => editor.document.getText(s)).join("\n").slice(0, most) };
}

export function look(): Message {
  const editor = vscode.window.activeTextEditor;
  const message: Message = { textDocument: null, openDocuments: openDocuments() };
  if (editor?.document.uri.scheme === "file") {
    message.textDocument = { uri: editor.document.uri.toString() };
    message.position = editor.selection.active;
    message.selection = selected(editor);
  }
  return message;
}

/** Sends what the user looks at, and again at each change, until it is disposed. */
export function watch(send: (message: Message) => void): vscode.Disposable {
  let timer: NodeJS.Timeout | undefined;
  let last = "";
  const tell = (): void => {
    timer = undefined;
    const message = look();
    const json = JSON.stringify(message);
    if (json !== last) send(message);
    last = json;
  };
  const soon = (): void => {
    timer ??= setTimeout(tell, throttle);
  };
  tell();
  return vscode.Disposable.from(
    vscode.window.onDidChangeActiveTextEditor(soon),
    vscode.window.onDidChangeTextEditorSelection(soon),
    vscode.window.tabGroups.onDidChangeTabs(soon),
    vscode.workspace.onDidChangeTextDocument(soon),
    { dispose: () => clearTimeout(timer) },
  );
}
