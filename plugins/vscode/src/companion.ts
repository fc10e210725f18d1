// The companion of this window: one process, started again when it ends.
import { existsSync } from "node:fs";
import * as vscode from "vscode";
import * as diagnostics from "./diagnostics";
import * as context from "./context";
import type { Diffs } from "./diff";
import { type Params, Peer, RpcError, tell } from "./rpc";
import { save } from "./save";

export interface Session {
  name: string;
  id: number;
}

export interface Status {
  state: "stopped" | "starting" | "running" | "waiting" | "failed";
  sessions: Session[];
  paused: boolean;
}

// Extensions of the agents' vendors, and the variables that they set in terminals. Their agent is theirs there.
const vendors: [string, RegExp][] = [
  ["google.gemini-cli-vscode-ide-companion", /^GEMINI_CLI_IDE/],
  ["anthropic.claude-code", /^CLAUDE_CODE_/],
  ["qwenlm.qwen-code-vscode-ide-companion", /^QWEN_CODE_IDE/],
];

const lived = 5000; // milliseconds after which a start counts as good
const longest = 30_000; // milliseconds between two starts
const silent = 30_000; // milliseconds that a start may take

export class Companion implements vscode.Disposable {
  private peer: Peer | undefined;
  private wanted = false;
  private failures = 0;
  private asked: boolean | undefined; // the pause that pollux has not answered yet
  private timer: NodeJS.Timeout | undefined;
  private watches: vscode.Disposable[] = [];
  private roots: readonly string[] = [];
  private readonly variables = new Map<string, string>();
  private readonly others: vscode.Disposable;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  status: Status = { state: "stopped", sessions: [], paused: false };

  constructor(
    private readonly diffs: Diffs,
    private readonly environment: vscode.EnvironmentVariableCollection,
    private readonly installed: string, // the program that installed this extension
    private readonly output: vscode.OutputChannel,
  ) {
    environment.persistent = false;
    this.others = vscode.extensions.onDidChange(() => this.equip({}));
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.others.dispose();
    this.unwatch();
    this.peer?.kill();
    this.changed.dispose();
  }

  /** Starts the companion. Nothing happens when it runs. */
  start(): void {
    this.wanted = true;
    if (this.peer) return;
    this.failures = 0;
    this.spawn();
  }

  /**
   * Ends it in good order. With keep, agents in other terminals stay connected, and what is open waits for the next editor. One that was killed is
   * started once more: nobody else knows what was typed since.
   */
  async stop(keep: boolean): Promise<void> {
    if (!this.wanted) return keep ? undefined : this.diffs.clear();
    this.wanted = false;
    clearTimeout(this.timer);
    this.diffs.flush();
    this.diffs.connect(undefined);
    this.unwatch();
    const peer = this.peer;
    const heard = peer?.call("shutdown", { keep }).then(() => true, (err: unknown) => err instanceof RpcError);
    if (await Promise.race([heard, sleep(2000).then(() => true)])) {
      peer?.notify("exit", null);
    } else if (this.diffs.kept) {
      const calls = [["initialize", this.hello()], ["shutdown", { keep }]] as const;
      await Promise.race([tell(this.command(), ["lsp"], calls), sleep(2000)]);
    }
    this.set({ state: "stopped", sessions: [] });
    this.variables.clear();
    this.equip({});
    if (!keep) await this.diffs.clear();
  }

  /** Runs a command of pollux. */
  async execute(command: string, argument?: unknown): Promise<any> {
    if (!this.peer || this.status.state !== "running") throw new Error("The companion does not run. “pollux: Start” starts it.");
    return this.peer.call("workspace/executeCommand", { command, arguments: argument === undefined ? [] : [argument] });
  }

  /** Shares or pauses what agents hear. Without a state: the other one of the last that was asked for, since pollux's status comes later. */
  async share(to?: "on" | "paused"): Promise<void> {
    const paused = to ? to === "paused" : !(this.asked ?? this.status.paused);
    this.asked = paused;
    try {
      await this.execute("pollux.setContext", { state: paused ? "paused" : "on" });
      this.set({ paused });
    } finally {
      if (this.asked === paused) this.asked = undefined;
    }
  }

  private set(change: Partial<Status>): void {
    this.status = { ...this.status, ...change };
    this.changed.fire();
  }

  private command(): string {
    return vscode.workspace.getConfiguration("pollux").get<string>("path") || (existsSync(this.installed) ? this.installed : "pollux");
  }

  private spawn(): void {
    const command = this.command();
    this.set({ state: "starting" });
    const peer: Peer = new Peer(command, ["lsp"], {
      request: (method, params, waited) => this.answer(method, params, waited),
      notification: (method, params) => this.hear(method, params),
      log: (line) => this.output.appendLine(line),
      ended: (reason, missing) => {
        if (this.peer === peer || this.peer === undefined) this.ended(command, reason, missing);
      },
    });
    this.peer = peer;
    this.roots = folders();
    this.timer = setTimeout(() => peer.kill(), silent);
    peer.call("initialize", this.hello()).then(
      (result) => this.initialized(peer, result),
      (err: unknown) => {
        if (!(err instanceof RpcError)) return; // it has ended
        this.fail(err.message);
        peer.kill();
      },
    );
    this.diffs.connect(peer); // what the user does from now on is heard behind the announcement
  }

  private hello(): unknown {
    const announcement = { version: 2, context: true, openDiff: true, env: true, types: true };
    return {
      processId: process.pid,
      clientInfo: { name: vscode.env.appName, version: vscode.version },
      workspaceFolders: this.roots.map((uri) => ({ uri, name: uri.split("/").at(-1) ?? "" })),
      capabilities: { experimental: { pollux: announcement } },
      initializationOptions: {
        pollux: {
          ...announcement,
          ide: { name: vscode.env.uriScheme, displayName: vscode.env.appName },
          idePid: process.ppid, // the ancestor of this window's shells
          trusted: vscode.workspace.isTrusted,
          openDiffs: this.diffs.announce(),
        },
      },
    };
  }

  private initialized(peer: Peer, result: any): void {
    if (this.peer !== peer) return;
    clearTimeout(this.timer);
    this.equip({ set: result?.capabilities?.experimental?.pollux?.env ?? {} });
    peer.notify("initialized", {});
    this.watches = [
      context.watch((message) => peer.notify("pollux/didChangeContext", message)),
      diagnostics.watch((found) => peer.notify("pollux/didChangeDiagnostics", found)),
      vscode.workspace.onDidGrantWorkspaceTrust(() => peer.notify("pollux/didChangeTrust", { trusted: true })),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.moved(peer)),
    ];
    this.set({ state: "running" });
    this.timer = setTimeout(() => (this.failures = 0), lived);
  }

  private moved(peer: Peer): void {
    const now = folders();
    const event = (uris: readonly string[]): unknown[] => uris.map((uri) => ({ uri, name: uri.split("/").at(-1) ?? "" }));
    const added = now.filter((uri) => !this.roots.includes(uri));
    const removed = this.roots.filter((uri) => !now.includes(uri));
    this.roots = now;
    if (added.length + removed.length > 0) peer.notify("workspace/didChangeWorkspaceFolders", { event: { added: event(added), removed: event(removed) } });
  }

  private unwatch(): void {
    vscode.Disposable.from(...this.watches).dispose();
    this.watches = [];
  }

  private ended(command: string, reason: string, missing: boolean): void {
    this.peer = undefined;
    clearTimeout(this.timer);
    this.unwatch();
    this.diffs.connect(undefined);
    this.set({ state: this.wanted ? "waiting" : this.status.state === "failed" ? "failed" : "stopped", sessions: [] });
    if (!this.wanted) return;
    this.output.appendLine(`pollux has ended: ${reason}`);
    if (missing) return this.fail(`${command} cannot be started: ${reason}`, "Choose the Program…", "How to Get It");
    // The views stay: the companion that comes back hears of them.
    if (++this.failures === 4) void vscode.window.showErrorMessage(`The companion keeps ending (${reason}). “pollux: Show Log” shows why.`);
    this.timer = setTimeout(() => this.wanted && !this.peer && this.spawn(), Math.min(longest, 200 * 2 ** (this.failures - 1)));
  }

  private fail(message: string, ...actions: string[]): void {
    this.wanted = false;
    this.set({ state: "failed" });
    void vscode.window.showErrorMessage(`pollux: ${message}`, ...actions).then((action) => {
      if (action === "Choose the Program…") void vscode.commands.executeCommand("workbench.action.openSettings", "pollux.path");
      if (action === "How to Get It") void vscode.commands.executeCommand("workbench.action.openWalkthrough", "pollux.pollux#start");
    });
  }

  /** Sets the variables of new terminals, but for agents whose vendor's own extension is here. */
  private equip(p: Params): void {
    for (const name of p.unset ?? []) this.variables.delete(name);
    for (const [name, value] of Object.entries(p.set ?? {})) this.variables.set(name, String(value));
    const taken = vendors.filter(([id]) => vscode.extensions.getExtension(id));
    this.environment.clear();
    for (const [name, value] of this.variables) {
      if (!taken.some(([, variables]) => variables.test(name))) this.environment.replace(name, value);
    }
  }

  private hear(method: string, p: Params): void {
    switch (method) {
      case "pollux/didChangeEnv":
        return this.equip(p);
      case "pollux/didChangeStatus":
        return this.set({ sessions: p.sessions ?? [], paused: p.context === "paused" });
      case "pollux/didChangeBase":
        return this.diffs.rebase(p);
      case "pollux/didChangeProposal":
        return this.diffs.follow(p);
      case "window/showMessage": {
        const message = String(p.message);
        if (p.type === 1) void vscode.window.showErrorMessage(message);
        else if (p.type === 2) void vscode.window.showWarningMessage(message);
        else vscode.window.setStatusBarMessage(message, 8000);
      }
    }
  }

  private async answer(method: string, p: Params, waited: () => boolean): Promise<unknown> {
    switch (method) {
      case "pollux/openDiff":
        return this.diffs.open(p);
      case "pollux/closeDiff":
        return this.diffs.close(p);
      case "pollux/openDocument":
        return openDocument(p);
      case "pollux/saveDocument":
        return save(vscode.Uri.parse(p.uri, true));
      case "pollux/ask": {
        const choice = await vscode.window.showInformationMessage(p.title ?? "pollux", { modal: true, detail: p.message }, ...(p.choices ?? []));
        return { choice: waited() ? (choice ?? null) : null };
      }
      case "pollux/typeText":
        return { typed: await type(p) };
      default:
        throw new RpcError(-32601, `the extension does not know ${method}`);
    }
  }
}

function folders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === "file").map((f) => f.uri.toString());
}

async function openDocument(p: Params): Promise<unknown> {
  const uri = vscode.Uri.parse(p.uri, true);
  if (uri.scheme !== "file") throw new RpcError(-32602, "no file");
  const options: vscode.TextDocumentShowOptions = { preserveFocus: !p.takeFocus, preview: false };
  const s = p.selection;
  if (s?.start) {
    const end = s.end ?? s.start;
    options.selection = new vscode.Range(s.start.line, s.start.character ?? 0, end.line, end.character ?? 0);
  }
  await vscode.window.showTextDocument(uri, options);
  return { opened: true };
}

/** Types into the terminal whose first process it is, and never Enter. */
async function type(p: Params): Promise<boolean> {
  for (const terminal of vscode.window.terminals) {
    if ((await terminal.processId) !== p.processId) continue;
    terminal.sendText(String(p.text).replace(/[\x00-\x1f\x7f-\x9f]/g, " "), false);
    return true;
  }
  return false;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
