// The extension: commands, the status bar, and the life of the companion.
import * as path from "node:path";
import * as vscode from "vscode";
import { Companion } from "./companion";
import { Diffs, sweep } from "./diff";
import { Past } from "./past";
import { watch } from "./save";

const agents = ["gemini", "qwen", "claude", "opencode", "copilot", "codex"];

let companion: Companion | undefined;

export function activate(extension: vscode.ExtensionContext): void {
  const output = vscode.window.createOutputChannel("pollux");
  const diffs = new Diffs();
  const here = new Companion(diffs, extension.environmentVariableCollection, extension.extension.packageJSON.pollux?.command ?? "pollux", output);
  const past = new Past((command, argument) => here.execute(command, argument));
  companion = here;
  const bar = vscode.window.createStatusBarItem("pollux.status", vscode.StatusBarAlignment.Right, 90);
  bar.name = "pollux";
  bar.command = "pollux.menu";
  const draw = (): void => show(bar, here, diffs);
  draw();
  bar.show();
  extension.subscriptions.push(output, diffs, here, past, bar, watch(), here.onDidChange(draw), diffs.onDidChange(draw));
  for (const [name, run] of Object.entries(commands(here, diffs, past, output))) {
    extension.subscriptions.push(vscode.commands.registerCommand(`pollux.${name}`, said(run)));
  }
  // Not awaited: VS Code reads our files, also of a diff that is to be closed, only after this function has returned.
  void sweep().finally(() => {
    if (vscode.workspace.getConfiguration("pollux").get("autostart", true)) here.start();
  });
}

/** VS Code waits for this for some seconds: agents in other terminals stay connected. */
export async function deactivate(): Promise<void> {
  await companion?.stop(true);
}

type Run = (...args: any[]) => unknown;

/** A command whose failure the user sees. */
function said(run: Run): Run {
  return async (...args) => {
    try {
      return await run(...args);
    } catch (err) {
      void vscode.window.showErrorMessage(err instanceof Error ? err.message : String(err));
    }
  };
}

function commands(here: Companion, diffs: Diffs, past: Past, output: vscode.OutputChannel): Record<string, Run> {
  return {
    accept: () => diffs.accept(),
    reject: () => diffs.reject(),
    keep: () => diffs.settle("keep"),
    take: () => diffs.settle("take"),
    next: () => diffs.next(),
    acceptAll: () => diffs.acceptAll("session"),
    acceptFile: () => diffs.acceptAll("file"),
    history: () => past.history(),
    rules: () => past.rules(),
    pause: () => here.share(), // one key is enough
    resume: () => here.share("on"),
    send: (uri?: vscode.Uri) => send(here, uri),
    run: () => run(),
    start: () => here.start(),
    stop: () => here.stop(false),
    log: () => output.show(),
    menu: () => menu(here, diffs),
  };
}

/** Says in the status bar which agents hear what the user looks at, and what waits. */
function show(bar: vscode.StatusBarItem, here: Companion, diffs: Diffs): void {
  const { state, sessions, paused } = here.status;
  const names = [...new Set(sessions.map((s) => s.name))];
  const waits = diffs.waiting > 0 ? ` $(git-compare) ${diffs.place} of ${diffs.waiting}` : "";
  bar.text = state === "running" ? `$(${paused ? "eye-closed" : "eye"}) ${names.join(", ") || "pollux"}${waits}` : `$(circle-slash) pollux`;
  bar.tooltip =
    state !== "running"
      ? `pollux: ${state}`
      : sessions.length === 0
        ? "pollux: no agent is connected"
        : paused
          ? "pollux: paused, no agent hears what you look at"
          : `pollux: ${names.join(", ")} ${names.length === 1 ? "hears" : "hear"} which files you have open, where the cursor is, and what you select`;
  bar.backgroundColor = diffs.waiting > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
}

async function menu(here: Companion, diffs: Diffs): Promise<void> {
  const items: [string, string][] = [
    ...(diffs.waiting > 0 ? ([["Show the next proposal", "next"], ["Accept", "accept"], ["Reject", "reject"], ["Accept all of this session", "acceptAll"]] as [string, string][]) : []),
    ["Run an agent in a terminal", "run"],
    ["Send this file or selection to an agent", "send"],
    ["Past proposals, and undo", "history"],
    ["Rules", "rules"],
    here.status.paused ? ["Resume: agents hear what I look at", "resume"] : ["Pause: no agent hears what I look at", "pause"],
    here.status.state === "running" ? ["Stop the companion", "stop"] : ["Start the companion", "start"],
    ["Show the log", "log"],
  ];
  const picked = await vscode.window.showQuickPick(
    items.map(([label, command]) => ({ label, command })),
    { title: "pollux" },
  );
  if (picked) await vscode.commands.executeCommand(`pollux.${picked.command}`);
}

/** Puts a mention of a file or of the selected lines into the prompt of an agent. */
async function send(here: Companion, uri?: vscode.Uri): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const target = uri ?? editor?.document.uri;
  if (target?.scheme !== "file") throw new Error("There is no file to send.");
  const argument: Record<string, unknown> = { uri: target.toString() };
  if (editor && !editor.selection.isEmpty && editor.document.uri.toString() === target.toString()) {
    argument.first = editor.selection.start.line + 1;
    argument.last = editor.selection.end.line + (editor.selection.end.character > 0 ? 1 : 0);
  }
  const { sessions } = here.status;
  if (sessions.length > 1) {
    const picked = await vscode.window.showQuickPick(
      sessions.map((s) => ({ label: s.name, id: s.id })),
      { title: "Send to" },
    );
    if (!picked) return;
    argument.session = picked.id;
  }
  const words = await vscode.window.showInputBox({ title: `Send ${path.basename(target.fsPath)}`, prompt: "Words that follow in the agent's prompt, or none. Nothing is submitted.", ignoreFocusOut: true });
  if (words === undefined) return;
  argument.words = words;
  const sent = await here.execute("pollux.mention", argument);
  vscode.window.setStatusBarMessage(`${path.basename(target.fsPath)}: sent to ${sent?.session ?? "the agent"}`, 5000);
}

/** Starts an agent in a terminal beside the text, or shows the one that runs. */
async function run(): Promise<void> {
  const agent = await vscode.window.showQuickPick(agents, { title: "Run an agent" });
  if (!agent) return;
  const open = vscode.window.terminals.find((t) => t.name === agent && t.exitStatus === undefined);
  if (open) return open.show();
  const terminal = vscode.window.createTerminal({ name: agent, location: { viewColumn: vscode.ViewColumn.Beside } });
  terminal.show();
  terminal.sendText(agent);
}
