// As much of VS Code as a companion needs from its start to its end.
const nothing = { dispose: () => {} };
const on = () => nothing;

/** Calls of fire reach those who listen. */
function event() {
  const all = new Set();
  const listen = (f) => (all.add(f), { dispose: () => all.delete(f) });
  return Object.assign(listen, { fire: (value) => all.forEach((f) => f(value)) });
}

export const settings = { path: "" };
export class EventEmitter {
  event = on;
  fire() {}
  dispose() {}
}
export const Disposable = { from: (...all) => ({ dispose: () => all.forEach((d) => d.dispose()) }) };
export const env = { appName: "a window", uriScheme: "window" };
export const version = "1.75.0";
export const extensions = { onDidChange: on, getExtension: () => undefined };
export const languages = { getDiagnostics: () => [], onDidChangeDiagnostics: on };
export const commands = { getCommands: async () => [] };
export const window = {
  activeTextEditor: undefined,
  tabGroups: { all: [], onDidChangeTabs: on },
  onDidChangeActiveTextEditor: on,
  onDidChangeTextEditorSelection: on,
  setStatusBarMessage: () => nothing,
  showErrorMessage: async () => undefined,
};
export const workspace = {
  isTrusted: true,
  workspaceFolders: [],
  textDocuments: [],
  getConfiguration: () => ({ get: (name) => settings[name] }),
  onDidOpenTextDocument: event(),
  onDidSaveTextDocument: event(),
  onDidChangeTextDocument: event(),
  onDidCloseTextDocument: event(),
  onDidGrantWorkspaceTrust: on,
  onDidChangeWorkspaceFolders: on,
};
