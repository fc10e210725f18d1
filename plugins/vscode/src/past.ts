// What was proposed before, and the rules: lists to choose from.
import * as path from "node:path";
import * as vscode from "vscode";

interface Entry {
  id: string;
  path: string;
  outcome: string;
  owner: string;
  at?: string;
  edited?: boolean;
  policy?: boolean;
  undone?: boolean;
  undoable?: boolean;
}

interface Rule {
  mode: string;
  pattern?: string;
  owner?: string;
}

export type Execute = (command: string, argument?: unknown) => Promise<any>;

/** The texts of past proposals, as documents that nobody can edit. */
export class Past implements vscode.Disposable {
  static readonly scheme = "pollux-past";
  private readonly texts = new Map<string, string>();
  private readonly provider = vscode.workspace.registerTextDocumentContentProvider(Past.scheme, {
    provideTextDocumentContent: (uri) => this.texts.get(uri.toString()) ?? "“pollux: Past Proposals” shows this one again.",
  });

  constructor(private readonly execute: Execute) {}

  dispose(): void {
    this.provider.dispose();
  }

  /** Lists past proposals, shows the one that is chosen, and offers to take its change back. */
  async history(): Promise<void> {
    const { entries } = (await this.execute("pollux.history")) as { entries: Entry[] };
    const entry = await choose(entries, "Past proposals", "Nothing was proposed here yet.", (e) => ({
      label: path.basename(e.path),
      description: [e.outcome, e.edited && "edited", e.policy && "by a rule", e.undone && "undone", e.owner].filter(Boolean).join(", "),
      detail: `${(e.at ?? "").slice(0, 16).replace("T", " ")}  ${vscode.workspace.asRelativePath(e.path)}`,
    }));
    if (!entry) return;
    const { oldText, finalText } = await this.execute("pollux.history", { id: entry.id });
    const [left, right] = [this.put(entry, "before", oldText), this.put(entry, "after", finalText)];
    await vscode.commands.executeCommand("vscode.diff", left, right, `${path.basename(entry.path)} (${entry.outcome})`, { preview: true });
    if (!entry.undoable || entry.undone) return;
    if ((await vscode.window.showInformationMessage(`${path.basename(entry.path)}: this change was ${entry.outcome}.`, "Undo It")) !== "Undo It") return;
    await this.execute("pollux.undo", { id: entry.id });
    vscode.window.setStatusBarMessage(`${path.basename(entry.path)} has its earlier text again`, 5000);
  }

  /** Lists the rules, the newest first, and changes the one that is chosen. */
  async rules(): Promise<void> {
    const { rules } = (await this.execute("pollux.status")) as { rules: Rule[] };
    const about = (r: Rule): string => r.pattern ?? r.owner ?? "everything";
    const rule = await choose(rules.reverse(), "Rules", "There is no rule: you are asked about everything.", (r) => ({ label: about(r), description: r.mode }));
    const policy = rule && (await vscode.window.showQuickPick(["ask", "accept", "terminal"], { title: about(rule) }));
    if (!policy) return;
    await this.execute("pollux.setPolicy", { policy, scope: rule.pattern ? "pattern" : rule.owner ? "session" : undefined, pattern: rule.pattern, session: rule.owner });
    vscode.window.setStatusBarMessage(`${about(rule)}: ${policy}`, 5000);
  }

  private put(entry: Entry, side: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: Past.scheme, path: `/${entry.id}/${side}/${path.basename(entry.path)}` });
    this.texts.set(uri.toString(), text);
    return uri;
  }
}

async function choose<T>(all: T[], title: string, none: string, label: (one: T) => vscode.QuickPickItem): Promise<T | undefined> {
  if (all.length === 0) {
    void vscode.window.showInformationMessage(none);
    return undefined;
  }
  const picked = await vscode.window.showQuickPick(
    all.map((one) => ({ ...label(one), one })),
    { title, matchOnDescription: true, matchOnDetail: true },
  );
  return picked?.one;
}
