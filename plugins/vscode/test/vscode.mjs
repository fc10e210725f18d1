// As much of VS Code as a companion needs from its start to its end.
const nothing = { dispose: () => {} };
const on = () => nothing;

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
  onDidChangeTextDocument: on,
  onDidGrantWorkspaceTrust: on,
  onDidChangeWorkspaceFolders: on,
};
