// Problems of files, from whatever shows them in the editor.
import * as vscode from "vscode";

interface Found {
  uri: string;
  diagnostics: unknown[];
}

function diagnostic(d: vscode.Diagnostic): unknown {
  return {
    range: { start: d.range.start, end: d.range.end },
    severity: d.severity + 1, // 1 is an error, as in LSP
    code: typeof d.code === "object" ? d.code.value : d.code,
    source: d.source,
    message: d.message,
  };
}

/** Sends the problems of each file that has or had some, until it is disposed. Of other files nothing is known. */
export function watch(send: (found: Found) => void): vscode.Disposable {
  const known = new Set<string>();
  const tell = (uris: readonly vscode.Uri[]): void => {
    for (const uri of uris) {
      const found = uri.scheme === "file" ? vscode.languages.getDiagnostics(uri) : [];
      const key = uri.toString();
      if (found.length > 0 || known.has(key)) send({ uri: key, diagnostics: found.map(diagnostic) });
      if (found.length > 0) known.add(key);
    }
  };
  tell(vscode.languages.getDiagnostics().map(([uri]) => uri));
  return vscode.languages.onDidChangeDiagnostics((e) => tell(e.uris));
}
