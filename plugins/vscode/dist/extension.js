"use strict";
var __create = Object.create;
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __getProtoOf = Object.getPrototypeOf;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toESM = (mod, isNodeMode, target) => (target = mod != null ? __create(__getProtoOf(mod)) : {}, __copyProps(
  // If the importer is in node compatibility mode or this is not an ESM
  // file that has been converted to a CommonJS file using a Babel-
  // compatible transform (i.e. "__esModule" has not been set), then set
  // "default" to the CommonJS "module.exports" for node compatibility.
  isNodeMode || !mod || !mod.__esModule ? __defProp(target, "default", { value: mod, enumerable: true }) : target,
  mod
));
var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);

// src/extension.ts
var extension_exports = {};
__export(extension_exports, {
  activate: () => activate,
  deactivate: () => deactivate
});
module.exports = __toCommonJS(extension_exports);
var path3 = __toESM(require("node:path"));
var vscode7 = __toESM(require("vscode"));

// src/companion.ts
var import_node_fs = require("node:fs");
var vscode4 = __toESM(require("vscode"));

// src/diagnostics.ts
var vscode = __toESM(require("vscode"));
function diagnostic(d) {
  return {
    range: { start: d.range.start, end: d.range.end },
    severity: d.severity + 1,
    // 1 is an error, as in LSP
    code: typeof d.code === "object" ? d.code.value : d.code,
    source: d.source,
    message: d.message
  };
}
function watch(send2) {
  const known = /* @__PURE__ */ new Set();
  const tell2 = (uris) => {
    for (const uri of uris) {
      const found = uri.scheme === "file" ? vscode.languages.getDiagnostics(uri) : [];
      const key = uri.toString();
      if (found.length > 0 || known.has(key)) send2({ uri: key, diagnostics: found.map(diagnostic) });
      if (found.length > 0) known.add(key);
    }
  };
  tell2(vscode.languages.getDiagnostics().map(([uri]) => uri));
  return vscode.languages.onDidChangeDiagnostics((e) => tell2(e.uris));
}

// src/context.ts
var vscode2 = __toESM(require("vscode"));
var throttle = 50;
var most = 16896;
function openDocuments() {
  const uris = /* @__PURE__ */ new Set();
  for (const tab2 of vscode2.window.tabGroups.all.flatMap((group) => group.tabs)) {
    const uri = tab2.input instanceof vscode2.TabInputText ? tab2.input.uri : tab2.input instanceof vscode2.TabInputTextDiff ? tab2.input.modified : void 0;
    if ((uri == null ? void 0 : uri.scheme) === "file") uris.add(uri.toString());
  }
  return [...uris];
}
function selected(editor) {
  const some = editor.selections.filter((s) => !s.isEmpty).sort((a, b) => a.start.compareTo(b.start));
  const [first, last] = [some[0], some.at(-1)];
  if (!first || !last) return void 0;
  return { start: first.start, end: last.end, text: some.map((s) => editor.document.getText(s)).join("\n").slice(0, most) };
}
function look() {
  const editor = vscode2.window.activeTextEditor;
  const message = { textDocument: null, openDocuments: openDocuments() };
  if ((editor == null ? void 0 : editor.document.uri.scheme) === "file") {
    message.textDocument = { uri: editor.document.uri.toString() };
    message.position = editor.selection.active;
    message.selection = selected(editor);
  }
  return message;
}
function watch2(send2) {
  let timer;
  let last = "";
  const tell2 = () => {
    timer = void 0;
    const message = look();
    const json = JSON.stringify(message);
    if (json !== last) send2(message);
    last = json;
  };
  const soon = () => {
    timer ??= setTimeout(tell2, throttle);
  };
  tell2();
  return vscode2.Disposable.from(
    vscode2.window.onDidChangeActiveTextEditor(soon),
    vscode2.window.onDidChangeTextEditorSelection(soon),
    vscode2.window.tabGroups.onDidChangeTabs(soon),
    vscode2.workspace.onDidChangeTextDocument(soon),
    { dispose: () => clearTimeout(timer) }
  );
}

// src/rpc.ts
var import_node_child_process = require("node:child_process");
var import_node_string_decoder = require("node:string_decoder");
var RpcError = class extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
  code;
};
var Peer = class {
  constructor(command, args, on) {
    this.on = on;
    var _a;
    this.child = (0, import_node_child_process.spawn)(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.child.on("error", (err) => this.end(err.message, err.code === "ENOENT" || err.code === "EACCES"));
    this.child.on("exit", (code, signal) => this.end(signal ?? `exit code ${code}`, false));
    (_a = this.child.stdin) == null ? void 0 : _a.on("error", () => {
    });
    lines(this.child.stdout, (line) => this.receive(line));
    lines(this.child.stderr, (line) => on.log(line));
  }
  on;
  child;
  calls = /* @__PURE__ */ new Map();
  waiting = /* @__PURE__ */ new Set();
  count = 0;
  over = false;
  notify(method, params) {
    this.send({ jsonrpc: "2.0", method, params });
  }
  /** Rejects with what pollux has answered, or when the process ends first. */
  call(method, params) {
    if (this.over) return Promise.reject(new Error("the companion has ended"));
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.send({ jsonrpc: "2.0", id, method, params });
    });
  }
  /** Ends the process, for one that does not end by itself. */
  kill() {
    this.child.kill();
  }
  send(message) {
    var _a;
    if (!this.over) (_a = this.child.stdin) == null ? void 0 : _a.write(`${JSON.stringify(message)}
`);
  }
  end(reason, missing) {
    if (this.over) return;
    this.over = true;
    this.waiting.clear();
    for (const call of this.calls.values()) call.reject(new Error("the companion has ended"));
    this.calls.clear();
    this.on.ended(reason, missing);
  }
  receive(line) {
    var _a;
    let m;
    try {
      m = JSON.parse(line);
    } catch {
      return;
    }
    if (typeof m !== "object" || m === null) return;
    if (typeof m.method === "string" && m.id !== void 0) {
      void this.answer(m);
    } else if (m.method === "$/cancelRequest") {
      this.waiting.delete((_a = m.params) == null ? void 0 : _a.id);
    } else if (typeof m.method === "string") {
      this.on.notification(m.method, m.params ?? {});
    } else if (typeof m.id === "number") {
      const call = this.calls.get(m.id);
      this.calls.delete(m.id);
      if (m.error) call == null ? void 0 : call.reject(new RpcError(m.error.code, String(m.error.message)));
      else call == null ? void 0 : call.resolve(m.result);
    }
  }
  async answer(m) {
    this.waiting.add(m.id);
    try {
      const result = await this.on.request(m.method, m.params ?? {}, () => this.waiting.has(m.id));
      this.send({ jsonrpc: "2.0", id: m.id, result: result ?? null });
    } catch (err) {
      const code = err instanceof RpcError ? err.code : -32603;
      this.send({ jsonrpc: "2.0", id: m.id, error: { code, message: err instanceof Error ? err.message : String(err) } });
    } finally {
      this.waiting.delete(m.id);
    }
  }
};
function lines(stream, each) {
  const decoder = new import_node_string_decoder.StringDecoder("utf8");
  let parts = [];
  stream == null ? void 0 : stream.on("data", (data) => {
    const pieces = decoder.write(data).split("\n");
    for (const [i, piece] of pieces.entries()) {
      parts.push(piece);
      if (i === pieces.length - 1) break;
      const line = parts.join("");
      parts = [];
      if (line.trim() !== "") each(line);
    }
  });
}
function tell(command, args, calls) {
  return new Promise((resolve) => {
    const child = (0, import_node_child_process.spawn)(command, args, { stdio: ["pipe", "ignore", "ignore"], detached: true, windowsHide: true });
    child.on("error", () => resolve());
    child.stdin.on("error", () => resolve());
    child.stdin.end(calls.map(([method, params], id) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}
`).join(""), () => resolve());
    child.unref();
  });
}

// src/save.ts
var import_promises = require("node:fs/promises");
var vscode3 = __toESM(require("vscode"));
var stamps = /* @__PURE__ */ new Map();
var largest = 16 << 20;
async function stamp(path4) {
  try {
    const s = await (0, import_promises.stat)(path4, { bigint: true });
    return `${s.ino} ${s.size} ${s.mtimeNs}`;
  } catch {
    return void 0;
  }
}
async function holds(path4, text) {
  try {
    if ((await (0, import_promises.stat)(path4)).size > largest) return true;
    const data = new TextDecoder("utf-8", { fatal: true }).decode(await (0, import_promises.readFile)(path4));
    return data.includes("\0") || lines2(data) === lines2(text);
  } catch {
    return true;
  }
}
function lines2(text) {
  return text.replace(/\r\n?/g, "\n");
}
function note(document) {
  if (document.uri.scheme !== "file" || document.isDirty) return;
  const [key, path4, text] = [document.uri.toString(), document.uri.fsPath, document.getText()];
  const before = stamps.get(key);
  stamps.set(key, stamp(path4).then(async (now) => await holds(path4, text) ? now : before));
}
function watch3() {
  vscode3.workspace.textDocuments.forEach(note);
  return vscode3.Disposable.from(
    vscode3.workspace.onDidOpenTextDocument(note),
    vscode3.workspace.onDidSaveTextDocument(note),
    vscode3.workspace.onDidChangeTextDocument((e) => note(e.document)),
    // read again from the disk, or all changes undone
    vscode3.workspace.onDidCloseTextDocument((d) => stamps.delete(d.uri.toString()))
  );
}
async function save(uri) {
  const key = uri.toString();
  await vscode3.commands.getCommands(true);
  const document = vscode3.workspace.textDocuments.find((d) => d.uri.toString() === key);
  if (!document) return { saved: false, why: "it is not open in the editor" };
  if (!document.isDirty) return { saved: true };
  const was = await stamps.get(key);
  if (was === void 0 || was !== await stamp(uri.fsPath)) return { saved: false, why: "it has changed on disk since the editor read it" };
  return await document.save() ? { saved: true } : { saved: false, why: "VS Code did not save it" };
}

// src/companion.ts
var vendors = [
  ["google.gemini-cli-vscode-ide-companion", /^GEMINI_CLI_IDE/],
  ["anthropic.claude-code", /^CLAUDE_CODE_/],
  ["qwenlm.qwen-code-vscode-ide-companion", /^QWEN_CODE_IDE/]
];
var lived = 5e3;
var longest = 3e4;
var silent = 3e4;
var Companion = class {
  constructor(diffs, environment, installed, output) {
    this.diffs = diffs;
    this.environment = environment;
    this.installed = installed;
    this.output = output;
    environment.persistent = false;
    this.others = vscode4.extensions.onDidChange(() => this.equip({}));
  }
  diffs;
  environment;
  installed;
  output;
  peer;
  wanted = false;
  failures = 0;
  asked;
  // the pause that pollux has not answered yet
  timer;
  watches = [];
  roots = [];
  variables = /* @__PURE__ */ new Map();
  others;
  changed = new vscode4.EventEmitter();
  onDidChange = this.changed.event;
  status = { state: "stopped", sessions: [], paused: false };
  dispose() {
    var _a;
    clearTimeout(this.timer);
    this.others.dispose();
    this.unwatch();
    (_a = this.peer) == null ? void 0 : _a.kill();
    this.changed.dispose();
  }
  /** Starts the companion. Nothing happens when it runs. */
  start() {
    this.wanted = true;
    if (this.peer) return;
    this.failures = 0;
    this.spawn();
  }
  /**
   * Ends it in good order. With keep, agents in other terminals stay connected, and what is open waits for the next editor. One that was killed is
   * started once more: nobody else knows what was typed since.
   */
  async stop(keep) {
    if (!this.wanted) return keep ? void 0 : this.diffs.clear();
    this.wanted = false;
    clearTimeout(this.timer);
    this.diffs.flush();
    this.diffs.connect(void 0);
    this.unwatch();
    const peer = this.peer;
    const heard = peer == null ? void 0 : peer.call("shutdown", { keep }).then(() => true, (err) => err instanceof RpcError);
    if (await Promise.race([heard, sleep(2e3).then(() => true)])) {
      peer == null ? void 0 : peer.notify("exit", null);
    } else if (this.diffs.kept) {
      const calls = [["initialize", this.hello()], ["shutdown", { keep }]];
      await Promise.race([tell(this.command(), ["lsp"], calls), sleep(2e3)]);
    }
    this.set({ state: "stopped", sessions: [] });
    this.variables.clear();
    this.equip({});
    if (!keep) await this.diffs.clear();
  }
  /** Runs a command of pollux. */
  async execute(command, argument) {
    if (!this.peer || this.status.state !== "running") throw new Error("The companion does not run. “pollux: Start” starts it.");
    return this.peer.call("workspace/executeCommand", { command, arguments: argument === void 0 ? [] : [argument] });
  }
  /** Shares or pauses what agents hear. Without a state: the other one of the last that was asked for, since pollux's status comes later. */
  async share(to) {
    const paused = to ? to === "paused" : !(this.asked ?? this.status.paused);
    this.asked = paused;
    try {
      await this.execute("pollux.setContext", { state: paused ? "paused" : "on" });
      this.set({ paused });
    } finally {
      if (this.asked === paused) this.asked = void 0;
    }
  }
  set(change2) {
    this.status = { ...this.status, ...change2 };
    this.changed.fire();
  }
  command() {
    return vscode4.workspace.getConfiguration("pollux").get("path") || ((0, import_node_fs.existsSync)(this.installed) ? this.installed : "pollux");
  }
  spawn() {
    const command = this.command();
    this.set({ state: "starting" });
    const peer = new Peer(command, ["lsp"], {
      request: (method, params, waited) => this.answer(method, params, waited),
      notification: (method, params) => this.hear(method, params),
      log: (line) => this.output.appendLine(line),
      ended: (reason, missing) => {
        if (this.peer === peer || this.peer === void 0) this.ended(command, reason, missing);
      }
    });
    this.peer = peer;
    this.roots = folders();
    this.timer = setTimeout(() => peer.kill(), silent);
    peer.call("initialize", this.hello()).then(
      (result) => this.initialized(peer, result),
      (err) => {
        if (!(err instanceof RpcError)) return;
        this.fail(err.message);
        peer.kill();
      }
    );
    this.diffs.connect(peer);
  }
  hello() {
    const announcement = { version: 2, context: true, openDiff: true, env: true, types: true };
    return {
      processId: process.pid,
      clientInfo: { name: vscode4.env.appName, version: vscode4.version },
      workspaceFolders: this.roots.map((uri) => ({ uri, name: uri.split("/").at(-1) ?? "" })),
      capabilities: { experimental: { pollux: announcement } },
      initializationOptions: {
        pollux: {
          ...announcement,
          ide: { name: vscode4.env.uriScheme, displayName: vscode4.env.appName },
          idePid: process.ppid,
          // the ancestor of this window's shells
          trusted: vscode4.workspace.isTrusted,
          openDiffs: this.diffs.announce()
        }
      }
    };
  }
  initialized(peer, result) {
    var _a, _b, _c;
    if (this.peer !== peer) return;
    clearTimeout(this.timer);
    this.equip({ set: ((_c = (_b = (_a = result == null ? void 0 : result.capabilities) == null ? void 0 : _a.experimental) == null ? void 0 : _b.pollux) == null ? void 0 : _c.env) ?? {} });
    peer.notify("initialized", {});
    this.watches = [
      watch2((message) => peer.notify("pollux/didChangeContext", message)),
      watch((found) => peer.notify("pollux/didChangeDiagnostics", found)),
      vscode4.workspace.onDidGrantWorkspaceTrust(() => peer.notify("pollux/didChangeTrust", { trusted: true })),
      vscode4.workspace.onDidChangeWorkspaceFolders(() => this.moved(peer))
    ];
    this.set({ state: "running" });
    this.timer = setTimeout(() => this.failures = 0, lived);
  }
  moved(peer) {
    const now = folders();
    const event = (uris) => uris.map((uri) => ({ uri, name: uri.split("/").at(-1) ?? "" }));
    const added = now.filter((uri) => !this.roots.includes(uri));
    const removed = this.roots.filter((uri) => !now.includes(uri));
    this.roots = now;
    if (added.length + removed.length > 0) peer.notify("workspace/didChangeWorkspaceFolders", { event: { added: event(added), removed: event(removed) } });
  }
  unwatch() {
    vscode4.Disposable.from(...this.watches).dispose();
    this.watches = [];
  }
  ended(command, reason, missing) {
    this.peer = void 0;
    clearTimeout(this.timer);
    this.unwatch();
    this.diffs.connect(void 0);
    this.set({ state: this.wanted ? "waiting" : this.status.state === "failed" ? "failed" : "stopped", sessions: [] });
    if (!this.wanted) return;
    this.output.appendLine(`pollux has ended: ${reason}`);
    if (missing) return this.fail(`${command} cannot be started: ${reason}`, "Choose the Program…", "How to Get It");
    if (++this.failures === 4) void vscode4.window.showErrorMessage(`The companion keeps ending (${reason}). “pollux: Show Log” shows why.`);
    this.timer = setTimeout(() => this.wanted && !this.peer && this.spawn(), Math.min(longest, 200 * 2 ** (this.failures - 1)));
  }
  fail(message, ...actions) {
    this.wanted = false;
    this.set({ state: "failed" });
    void vscode4.window.showErrorMessage(`pollux: ${message}`, ...actions).then((action) => {
      if (action === "Choose the Program…") void vscode4.commands.executeCommand("workbench.action.openSettings", "pollux.path");
      if (action === "How to Get It") void vscode4.commands.executeCommand("workbench.action.openWalkthrough", "pollux.pollux#start");
    });
  }
  /** Sets the variables of new terminals, but for agents whose vendor's own extension is here. */
  equip(p) {
    for (const name of p.unset ?? []) this.variables.delete(name);
    for (const [name, value] of Object.entries(p.set ?? {})) this.variables.set(name, String(value));
    const taken = vendors.filter(([id]) => vscode4.extensions.getExtension(id));
    this.environment.clear();
    for (const [name, value] of this.variables) {
      if (!taken.some(([, variables]) => variables.test(name))) this.environment.replace(name, value);
    }
  }
  hear(method, p) {
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
        if (p.type === 1) void vscode4.window.showErrorMessage(message);
        else if (p.type === 2) void vscode4.window.showWarningMessage(message);
        else vscode4.window.setStatusBarMessage(message, 8e3);
      }
    }
  }
  async answer(method, p, waited) {
    switch (method) {
      case "pollux/openDiff":
        return this.diffs.open(p);
      case "pollux/closeDiff":
        return this.diffs.close(p);
      case "pollux/openDocument":
        return openDocument(p);
      case "pollux/saveDocument":
        return save(vscode4.Uri.parse(p.uri, true));
      case "pollux/ask": {
        const choice = await vscode4.window.showInformationMessage(p.title ?? "pollux", { modal: true, detail: p.message }, ...p.choices ?? []);
        return { choice: waited() ? choice ?? null : null };
      }
      case "pollux/typeText":
        return { typed: await type(p) };
      default:
        throw new RpcError(-32601, `the extension does not know ${method}`);
    }
  }
};
function folders() {
  return (vscode4.workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === "file").map((f) => f.uri.toString());
}
async function openDocument(p) {
  const uri = vscode4.Uri.parse(p.uri, true);
  if (uri.scheme !== "file") throw new RpcError(-32602, "no file");
  const options = { preserveFocus: !p.takeFocus, preview: false };
  const s = p.selection;
  if (s == null ? void 0 : s.start) {
    const end = s.end ?? s.start;
    options.selection = new vscode4.Range(s.start.line, s.start.character ?? 0, end.line, end.character ?? 0);
  }
  await vscode4.window.showTextDocument(uri, options);
  return { opened: true };
}
async function type(p) {
  for (const terminal of vscode4.window.terminals) {
    if (await terminal.processId !== p.processId) continue;
    terminal.sendText(String(p.text).replace(/[\x00-\x1f\x7f-\x9f]/g, " "), false);
    return true;
  }
  return false;
}
function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// src/diff.ts
var path = __toESM(require("node:path"));
var vscode5 = __toESM(require("vscode"));

// src/text.ts
var ends = /\r\n|\r|\n/g;
var mark = "\uFEFF";
function unfit(text) {
  if (text.includes("\0")) return { code: -32002, message: "VS Code shows no text with NUL bytes" };
  if (text.length > 45 << 20) return { code: -32003, message: "VS Code hands no text of more than 50 MB to an extension" };
  return void 0;
}
function encode(text) {
  return new TextEncoder().encode(mark + unmarked(text));
}
function unmarked(text) {
  return text.startsWith(mark) ? text.slice(1) : text;
}
function same(edited, text) {
  return edited.replace(ends, "\n") === unmarked(text).replace(ends, "\n");
}
function restore(edited, original) {
  const from = unmarked(original).split(ends);
  const was = original.match(ends) ?? [];
  const to = edited.split(ends);
  const usual = frequent(was);
  const end = (i) => was[i] ?? usual;
  const between = to.length - 1;
  let head = 0;
  let tail = 0;
  if (from.length === to.length) {
    head = between;
  } else {
    const most2 = Math.min(was.length, between);
    while (head < most2 && from[head] === to[head]) head++;
    while (tail < most2 - head && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail++;
  }
  const parts = [];
  for (const [i, line] of to.entries()) {
    parts.push(line);
    if (i < head) parts.push(end(i));
    else if (i < between) parts.push(i >= between - tail ? end(was.length - (between - i)) : usual);
  }
  const text = parts.join("");
  return (original.startsWith(mark) ? mark : "") + (same(edited, text) ? text : to.join(usual));
}
function frequent(list) {
  var _a;
  const counts = /* @__PURE__ */ new Map();
  for (const end of list) counts.set(end, (counts.get(end) ?? 0) + 1);
  return ((_a = [...counts].sort((a, b) => b[1] - a[1])[0]) == null ? void 0 : _a[0]) ?? "\n";
}
function change(text, become) {
  const most2 = Math.min(text.length, become.length);
  let start = 0;
  while (start < most2 && text[start] === become[start]) start++;
  if (start > 0 && /[\uD800-\uDBFF\r]/.test(text[start - 1])) start--;
  let tail = 0;
  while (tail < most2 - start && text[text.length - 1 - tail] === become[become.length - 1 - tail]) tail++;
  if (tail > 0 && /[\uDC00-\uDFFF\n]/.test(text[text.length - tail])) tail--;
  return { start, end: text.length - tail, with: become.slice(start, become.length - tail) };
}

// src/diff.ts
var scheme = "pollux";
var idle = 1e3;
var Diffs = class {
  /** In the order in which they came. */
  queue = [];
  /** Rejections that no companion has answered, as announce() tells them. */
  unheard = /* @__PURE__ */ new Map();
  companion;
  files = new Files();
  changed = new vscode5.EventEmitter();
  /** The queue, or what is on show, has changed. */
  onDidChange = this.changed.event;
  disposables;
  beside = vscode5.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode5.ThemeColor("merge.currentContentBackground"),
    overviewRulerColor: new vscode5.ThemeColor("editorOverviewRuler.warningForeground")
  });
  typed = 0;
  showing = 0;
  pumping;
  constructor() {
    this.disposables = [
      this.changed,
      this.beside,
      vscode5.workspace.registerFileSystemProvider(scheme, this.files, { isCaseSensitive: true }),
      vscode5.workspace.onDidChangeTextDocument((e) => this.edited(e.document)),
      vscode5.workspace.onWillSaveTextDocument((e) => this.saving(e)),
      vscode5.window.tabGroups.onDidChangeTabs(() => this.closed()),
      vscode5.window.onDidChangeVisibleTextEditors(() => this.queue.forEach((p) => this.mark(p))),
      vscode5.window.onDidChangeTextEditorSelection((e) => {
        if (e.kind === vscode5.TextEditorSelectionChangeKind.Keyboard) this.typed = Date.now();
      })
    ];
  }
  dispose() {
    clearTimeout(this.pumping);
    for (const p of this.queue) clearTimeout(p.timer);
    for (const d of this.disposables) d.dispose();
  }
  get waiting() {
    return this.queue.length;
  }
  /** The place in the queue, from 1, of the proposal that the user sees, else of the next one. */
  get place() {
    return this.queue.indexOf(this.seen() ?? this.following()) + 1;
  }
  /** The views as a companion that has come back wants to hear of them, with what the one before has not heard. It counts their versions anew. */
  announce() {
    const views = this.queue.map((p) => {
      const view = this.view(p);
      Object.assign(p, { version: 1, base: 0, edits: 0, deciding: false, told: view.content });
      return view;
    });
    return [...this.unheard.values(), ...views];
  }
  /** Whether there is anything to announce. */
  get kept() {
    return this.queue.length + this.unheard.size > 0;
  }
  connect(companion2) {
    this.companion = companion2;
    for (const p of this.queue) p.deciding &&= companion2 !== void 0;
  }
  /** Tells every edit that nobody has heard of yet, before the companion ends. */
  flush() {
    for (const p of this.queue) this.report(p);
  }
  /** pollux/openDiff */
  async open(q) {
    const problem = unfit(q.oldText ?? "") ?? unfit(q.newText ?? "");
    if (problem) throw new RpcError(problem.code, problem.message);
    const known = this.find(q.diffId);
    if (known) await this.finish(known);
    const id = String(q.diffId);
    const name = path.posix.basename(vscode5.Uri.file(q.filePath).path);
    const text = q.newText ?? "";
    const p = {
      id,
      path: q.filePath,
      title: q.title || name,
      proposed: text,
      fixed: q.readOnly ?? "",
      left: vscode5.Uri.from({ scheme, path: `/before/${id}/${name}` }),
      right: vscode5.Uri.from({ scheme, path: `/proposal/${id}/${name}` }),
      old: q.oldText ?? "",
      text,
      shown: text,
      told: text,
      version: q.version ?? 0,
      base: q.baseVersion ?? 0,
      edits: 0,
      conflict: q.conflict ?? null,
      deciding: false,
      answer: Promise.resolve(),
      updating: Promise.resolve(),
      busy: false,
      opened: false
    };
    this.files.put(p.left, p.old, true);
    this.files.put(p.right, p.text, p.fixed !== "");
    this.queue.push(p);
    const file = vscode5.workspace.textDocuments.find((d) => d.uri.scheme === "file" && d.uri.fsPath === p.path);
    this.pump();
    this.changed.fire();
    return { opened: true, bufferModified: (file == null ? void 0 : file.isDirty) ?? false };
  }
  /** pollux/closeDiff */
  close(q) {
    const rejected = this.unheard.get(q.diffId);
    if (rejected) {
      this.unheard.delete(q.diffId);
      return { content: rejected.content };
    }
    const p = this.find(q.diffId);
    if (!p) throw new RpcError(-32602, `no diff ${q.diffId}`);
    const content = this.content(p);
    void this.finish(p);
    return { content, version: p.version };
  }
  /** pollux/didChangeBase: the file has changed, and the proposal with it. */
  rebase(q) {
    this.follow(q, (p) => {
      p.base = q.baseVersion;
      if (p.old !== q.oldText) vscode5.window.setStatusBarMessage(`${path.basename(p.path)}: the file has changed; the proposal is shown on what it holds now`, 8e3);
      p.old = q.oldText;
      this.files.put(p.left, p.old, true);
    });
  }
  /** pollux/didChangeProposal: somebody has edited it in another view. */
  follow(q, then) {
    const p = this.find(q.diffId);
    if (!p) return;
    p.updating = p.updating.then(async () => {
      if (this.find(p.id) !== p || this.report(p) || (q.edit ?? p.edits) < p.edits) return;
      p.busy = true;
      const done = await this.put(p, q.content);
      p.busy = false;
      if (!done) {
        this.report(p);
        return;
      }
      const before = JSON.stringify(p.conflict);
      Object.assign(p, { version: q.version, text: q.content, shown: q.content, told: q.content, conflict: q.conflict ?? null });
      then == null ? void 0 : then(p);
      this.mark(p);
      if (p.conflict && JSON.stringify(p.conflict) !== before) this.clash(p, p.conflict);
    });
  }
  /** Accepts the proposal that the user sees, with its text as it is now. */
  async accept(p = this.seen()) {
    if (!p) return this.next();
    const content = this.content(p);
    if (content === "" && p.proposed !== "") {
      void vscode5.window.showErrorMessage("An emptied proposal cannot be accepted: the agent would write its own text. Reject it instead.");
      return;
    }
    if (!await this.decide(p, "accepted", content)) return;
    if (this.content(p) !== content) await this.rescue(p);
    await this.finish(p);
  }
  /** Accepts the proposal that the user sees and, by a rule, those of its session or for its file that follow. */
  async acceptAll(scope) {
    var _a;
    const p = this.seen();
    if (!p) return this.next();
    this.report(p);
    await ((_a = this.companion) == null ? void 0 : _a.call("workspace/executeCommand", { command: "pollux.setPolicy", arguments: [{ policy: "accept", scope, diffId: p.id }] }));
    if (this.find(p.id) === p) await this.accept(p);
  }
  async reject() {
    const p = this.seen();
    if (!p) return this.next();
    await this.refuse(p);
  }
  /** Ends a conflict: keep has the proposal stand over the file's change, take has the file's lines stand. It does not accept. */
  async settle(how, p = this.seen()) {
    const conflict = JSON.stringify(p == null ? void 0 : p.conflict);
    while (p == null ? void 0 : p.deciding) await p.answer;
    if (!(p == null ? void 0 : p.conflict) || this.find(p.id) !== p) {
      void vscode5.window.showInformationMessage("Nothing is in conflict here.");
      return;
    }
    if (JSON.stringify(p.conflict) !== conflict) {
      this.clash(p, p.conflict);
      return;
    }
    await this.decide(p, how, this.content(p));
  }
  /** Shows the proposal behind the one that the user sees, and gives it the focus. */
  async next() {
    const p = this.following();
    if (p) await this.show(p, true);
    else void vscode5.window.showInformationMessage("No proposal waits.");
  }
  /** Ends every diff without a word: the companion has ended in good order, and rejected them. */
  async clear() {
    this.unheard.clear();
    for (const p of [...this.queue]) await this.finish(p);
  }
  view(p) {
    return { diffId: p.id, filePath: p.path, content: this.content(p), shown: p.shown, oldText: p.old };
  }
  find(id) {
    return this.queue.find((p) => p.id === id);
  }
  of(uri) {
    return uri.scheme === scheme ? this.queue.find((p) => p.right.toString() === uri.toString()) : void 0;
  }
  /** The proposal whose diff is the front tab of a group, first of the group with the focus. */
  seen() {
    const { activeTabGroup, all } = vscode5.window.tabGroups;
    for (const { activeTab } of [activeTabGroup, ...all]) {
      const p = (activeTab == null ? void 0 : activeTab.input) instanceof vscode5.TabInputTextDiff ? this.of(activeTab.input.modified) : void 0;
      if (p) return p;
    }
    return void 0;
  }
  /** The proposal behind the one that the user sees, else the oldest. */
  following() {
    const p = this.seen();
    return p ? this.queue[(this.queue.indexOf(p) + 1) % this.queue.length] : this.queue[0];
  }
  document(p) {
    return vscode5.workspace.textDocuments.find((d) => !d.isClosed && d.uri.toString() === p.right.toString());
  }
  /** The text of a proposal as it is now. */
  content(p) {
    var _a;
    const text = ((_a = this.document(p)) == null ? void 0 : _a.getText()) ?? this.files.text(p.right);
    return same(text, p.text) ? p.text : restore(text, p.text);
  }
  /** Has the document of a proposal hold a text. Returns false when the user typed before it could. */
  async put(p, content) {
    const document = this.document(p);
    if (!document || p.fixed) {
      this.files.put(p.right, content, p.fixed !== "");
      return true;
    }
    if (same(document.getText(), content)) return true;
    const newline = document.eol === vscode5.EndOfLine.CRLF ? "\r\n" : "\n";
    const was = document.getText();
    const least = change(was, content.replace(/^\uFEFF/, "").replace(/\r\n|\r|\n/g, newline));
    const edit = new vscode5.WorkspaceEdit();
    edit.replace(p.right, new vscode5.Range(document.positionAt(least.start), document.positionAt(least.end)), least.with);
    return vscode5.workspace.applyEdit(edit);
  }
  /** Tells what the user has edited and nobody has heard of. Returns whether there was any. */
  report(p) {
    var _a;
    const content = this.content(p);
    if (content === p.told || p.fixed) return false;
    p.told = content;
    p.edits++;
    (_a = this.companion) == null ? void 0 : _a.notify("pollux/didChangeDiff", { diffId: p.id, version: p.edits, from: p.version, content });
    return true;
  }
  edited(document) {
    if (document.uri.scheme === "file") this.typed = Date.now();
    const p = this.of(document.uri);
    if (!p || p.timer) return;
    p.timer = setTimeout(() => {
      p.timer = void 0;
      if (this.find(p.id) !== p) return;
      if (p.busy) this.edited(document);
      else this.report(p);
    }, 200);
  }
  /** A save by hand accepts what the user sees. One that VS Code makes by itself, or of all files, does not. */
  saving(e) {
    const p = this.of(e.document.uri);
    if (p && p === this.seen() && e.reason === vscode5.TextDocumentSaveReason.Manual) void this.accept(p);
  }
  /** Asks pollux to end a diff, or its conflict, with what is on the screen. It refuses where something is newer, which it tells. */
  async decide(p, outcome, content) {
    if (p.deciding) {
      vscode5.window.setStatusBarMessage("pollux: your last decision is not answered yet", 3e3);
      return false;
    }
    if (!this.companion) {
      void vscode5.window.showWarningMessage("The companion does not run just now. The proposal still waits for your decision.");
      return false;
    }
    p.deciding = true;
    p.told = content;
    p.edits++;
    const call = this.companion.call("pollux/resolveDiff", { diffId: p.id, version: p.version, baseVersion: p.base, outcome, content, edit: p.edits });
    p.answer = call.catch(() => {
    });
    try {
      await call;
      return this.find(p.id) === p;
    } catch (err) {
      if (this.find(p.id) === p) {
        void vscode5.window.showWarningMessage(err instanceof Error ? err.message : String(err));
        p.opened = tab(p) !== void 0;
        this.pump();
      }
      return false;
    } finally {
      p.deciding = false;
    }
  }
  /** Keeps what the user typed between the key that accepts and pollux's answer. */
  async rescue(p) {
    const document = await vscode5.workspace.openTextDocument({ content: this.content(p) });
    await vscode5.window.showTextDocument(document, { preview: false, preserveFocus: true });
    void vscode5.window.showWarningMessage(`${path.basename(p.path)} was accepted without what you have typed since. That is in a new, untitled file.`);
  }
  async refuse(p) {
    var _a;
    if (p.deciding) return;
    this.report(p);
    const rejected = { ...this.view(p), outcome: "rejected" };
    this.unheard.set(p.id, rejected);
    (_a = this.companion) == null ? void 0 : _a.call("pollux/resolveDiff", { diffId: p.id, version: p.version, baseVersion: p.base, outcome: "rejected" }).then(
      () => this.unheard.delete(p.id),
      (err) => err instanceof RpcError && this.unheard.delete(p.id)
    );
    await this.finish(p);
  }
  /** The one place where a diff ends. It is out of the queue before anything is closed. */
  async finish(p) {
    const at = this.queue.indexOf(p);
    if (at < 0) return;
    this.queue.splice(at, 1);
    clearTimeout(p.timer);
    this.changed.fire();
    const document = this.document(p);
    if (document == null ? void 0 : document.isDirty) await document.save();
    await close(p);
    this.files.drop(p.left, p.right);
    this.pump();
  }
  /** A tab that the user has closed rejects. One that was moved is open elsewhere. */
  closed() {
    for (const p of this.queue.filter((p2) => p2.opened && !p2.deciding && !tab(p2))) {
      setTimeout(() => {
        if (this.find(p.id) === p && !p.deciding && !tab(p)) void this.refuse(p);
      }, 100);
    }
  }
  /** Shows a diff. The focus stays where it is unless the user has asked for the diff: nobody knows who types in a terminal. */
  async show(p, focus) {
    const options = { viewColumn: column(), preview: false, preserveFocus: !focus };
    this.showing++;
    try {
      await vscode5.commands.executeCommand("vscode.diff", p.left, p.right, p.title, options);
    } catch (err) {
      void vscode5.window.showErrorMessage(`A diff cannot be shown: ${err instanceof Error ? err.message : err}. Try “pollux review” in a terminal.`);
    }
    this.showing--;
    if (this.find(p.id) !== p) {
      await close(p);
      return this.pump();
    }
    p.opened = tab(p) !== void 0;
    this.mark(p);
    this.changed.fire();
    if (p.conflict) this.clash(p, p.conflict);
    if (p.fixed) vscode5.window.setStatusBarMessage(p.fixed, 8e3);
  }
  /** Opens the oldest diff when none is on show and the user pauses. */
  pump() {
    clearTimeout(this.pumping);
    const p = this.queue[0];
    if (!p || this.showing > 0 || this.queue.some((q) => tab(q))) return;
    const pause = idle - (Date.now() - this.typed);
    if (pause > 0) this.pumping = setTimeout(() => this.pump(), pause);
    else void this.show(p, false);
  }
  /** Shows the file's lines beside those of the proposal that they are in conflict with. */
  mark(p) {
    var _a;
    for (const editor of vscode5.window.visibleTextEditors.filter((e) => e.document.uri.toString() === p.right.toString())) {
      editor.setDecorations(
        this.beside,
        (((_a = p.conflict) == null ? void 0 : _a.places) ?? []).map((place) => ({
          range: new vscode5.Range(place.start, 0, Math.max(place.start, place.end - 1), 0),
          hoverMessage: new vscode5.MarkdownString("The file has here:").appendCodeblock(place.text),
          renderOptions: { after: { contentText: ` ◀ the file: ${place.text.trim().split("\n")[0] || "nothing"}`, color: new vscode5.ThemeColor("editorCodeLens.foreground") } }
        }))
      );
    }
  }
  clash(p, conflict) {
    const take = conflict.places.length > 0 ? ["Take the File's Lines"] : [];
    void vscode5.window.showWarningMessage(`${path.basename(p.path)}: ${conflict.reason}`, "Keep the Proposal", ...take).then((choice) => {
      if (choice && this.find(p.id) === p && p.conflict) void this.settle(choice === "Keep the Proposal" ? "keep" : "take", p);
    });
  }
};
async function sweep() {
  const left = vscode5.window.tabGroups.all.flatMap((g) => g.tabs).filter((t) => t.input instanceof vscode5.TabInputTextDiff && t.input.modified.scheme === scheme);
  for (const d of vscode5.workspace.textDocuments) if (d.uri.scheme === scheme && d.isDirty) await d.save();
  if (left.length > 0) await vscode5.window.tabGroups.close(left, true);
}
function tabs(p) {
  return vscode5.window.tabGroups.all.flatMap((group) => group.tabs).filter((t) => t.input instanceof vscode5.TabInputTextDiff && t.input.modified.toString() === p.right.toString());
}
function tab(p) {
  return tabs(p)[0];
}
async function close(p) {
  const open = tabs(p);
  if (open.length > 0) await vscode5.window.tabGroups.close(open, true);
}
function column() {
  var _a;
  const { activeTabGroup, all } = vscode5.window.tabGroups;
  return ((_a = [activeTabGroup, ...all].find((g) => {
    var _a2;
    return !(((_a2 = g.activeTab) == null ? void 0 : _a2.input) instanceof vscode5.TabInputTerminal);
  })) == null ? void 0 : _a.viewColumn) ?? vscode5.ViewColumn.Beside;
}
var Files = class {
  files = /* @__PURE__ */ new Map();
  changes = new vscode5.EventEmitter();
  onDidChangeFile = this.changes.event;
  time = Date.now();
  put(uri, text, fixed) {
    this.files.set(uri.toString(), { bytes: encode(text), time: ++this.time, fixed });
    this.changes.fire([{ type: vscode5.FileChangeType.Changed, uri }]);
  }
  drop(...uris) {
    for (const uri of uris) this.files.delete(uri.toString());
  }
  stat(uri) {
    const file = this.get(uri);
    return {
      type: vscode5.FileType.File,
      ctime: 0,
      mtime: file.time,
      size: file.bytes.length,
      ...file.fixed && { permissions: vscode5.FilePermission.Readonly }
    };
  }
  readFile(uri) {
    return this.get(uri).bytes;
  }
  /** What a document holds that is opened anew. */
  text(uri) {
    var _a;
    return new TextDecoder().decode((_a = this.files.get(uri.toString())) == null ? void 0 : _a.bytes);
  }
  writeFile(uri, bytes) {
    this.files.set(uri.toString(), { fixed: false, ...this.files.get(uri.toString()), bytes, time: ++this.time });
  }
  watch() {
    return new vscode5.Disposable(() => {
    });
  }
  readDirectory() {
    return [];
  }
  createDirectory() {
    throw vscode5.FileSystemError.NoPermissions();
  }
  delete() {
    throw vscode5.FileSystemError.NoPermissions();
  }
  rename() {
    throw vscode5.FileSystemError.NoPermissions();
  }
  get(uri) {
    const file = this.files.get(uri.toString());
    if (!file) throw vscode5.FileSystemError.FileNotFound(uri);
    return file;
  }
};

// src/past.ts
var path2 = __toESM(require("node:path"));
var vscode6 = __toESM(require("vscode"));
var Past = class _Past {
  constructor(execute) {
    this.execute = execute;
  }
  execute;
  static scheme = "pollux-past";
  texts = /* @__PURE__ */ new Map();
  provider = vscode6.workspace.registerTextDocumentContentProvider(_Past.scheme, {
    provideTextDocumentContent: (uri) => this.texts.get(uri.toString()) ?? "“pollux: Past Proposals” shows this one again."
  });
  dispose() {
    this.provider.dispose();
  }
  /** Lists past proposals, shows the one that is chosen, and offers to take its change back. */
  async history() {
    const { entries } = await this.execute("pollux.history");
    const entry = await choose(entries, "Past proposals", "Nothing was proposed here yet.", (e) => ({
      label: path2.basename(e.path),
      description: [e.outcome, e.edited && "edited", e.policy && "by a rule", e.undone && "undone", e.owner].filter(Boolean).join(", "),
      detail: `${(e.at ?? "").slice(0, 16).replace("T", " ")}  ${vscode6.workspace.asRelativePath(e.path)}`
    }));
    if (!entry) return;
    const { oldText, finalText } = await this.execute("pollux.history", { id: entry.id });
    const [left, right] = [this.put(entry, "before", oldText), this.put(entry, "after", finalText)];
    await vscode6.commands.executeCommand("vscode.diff", left, right, `${path2.basename(entry.path)} (${entry.outcome})`, { preview: true });
    if (!entry.undoable || entry.undone) return;
    if (await vscode6.window.showInformationMessage(`${path2.basename(entry.path)}: this change was ${entry.outcome}.`, "Undo It") !== "Undo It") return;
    await this.execute("pollux.undo", { id: entry.id });
    vscode6.window.setStatusBarMessage(`${path2.basename(entry.path)} has its earlier text again`, 5e3);
  }
  /** Lists the rules, the newest first, and changes the one that is chosen. */
  async rules() {
    const { rules } = await this.execute("pollux.status");
    const about = (r) => r.pattern ?? r.owner ?? "everything";
    const rule = await choose(rules.reverse(), "Rules", "There is no rule: you are asked about everything.", (r) => ({ label: about(r), description: r.mode }));
    const policy = rule && await vscode6.window.showQuickPick(["ask", "accept", "terminal"], { title: about(rule) });
    if (!policy) return;
    await this.execute("pollux.setPolicy", { policy, scope: rule.pattern ? "pattern" : rule.owner ? "session" : void 0, pattern: rule.pattern, session: rule.owner });
    vscode6.window.setStatusBarMessage(`${about(rule)}: ${policy}`, 5e3);
  }
  put(entry, side, text) {
    const uri = vscode6.Uri.from({ scheme: _Past.scheme, path: `/${entry.id}/${side}/${path2.basename(entry.path)}` });
    this.texts.set(uri.toString(), text);
    return uri;
  }
};
async function choose(all, title, none, label) {
  if (all.length === 0) {
    void vscode6.window.showInformationMessage(none);
    return void 0;
  }
  const picked = await vscode6.window.showQuickPick(
    all.map((one) => ({ ...label(one), one })),
    { title, matchOnDescription: true, matchOnDetail: true }
  );
  return picked == null ? void 0 : picked.one;
}

// src/extension.ts
var agents = ["gemini", "qwen", "claude", "opencode", "copilot", "codex"];
var companion;
function activate(extension) {
  var _a;
  const output = vscode7.window.createOutputChannel("pollux");
  const diffs = new Diffs();
  const here = new Companion(diffs, extension.environmentVariableCollection, ((_a = extension.extension.packageJSON.pollux) == null ? void 0 : _a.command) ?? "pollux", output);
  const past = new Past((command, argument) => here.execute(command, argument));
  companion = here;
  const bar = vscode7.window.createStatusBarItem("pollux.status", vscode7.StatusBarAlignment.Right, 90);
  bar.name = "pollux";
  bar.command = "pollux.menu";
  const draw = () => show(bar, here, diffs);
  draw();
  bar.show();
  extension.subscriptions.push(output, diffs, here, past, bar, watch3(), here.onDidChange(draw), diffs.onDidChange(draw));
  for (const [name, run2] of Object.entries(commands6(here, diffs, past, output))) {
    extension.subscriptions.push(vscode7.commands.registerCommand(`pollux.${name}`, said(run2)));
  }
  void sweep().finally(() => {
    if (vscode7.workspace.getConfiguration("pollux").get("autostart", true)) here.start();
  });
}
async function deactivate() {
  await (companion == null ? void 0 : companion.stop(true));
}
function said(run2) {
  return async (...args) => {
    try {
      return await run2(...args);
    } catch (err) {
      void vscode7.window.showErrorMessage(err instanceof Error ? err.message : String(err));
    }
  };
}
function commands6(here, diffs, past, output) {
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
    pause: () => here.share(),
    // one key is enough
    resume: () => here.share("on"),
    send: (uri) => send(here, uri),
    run: () => run(),
    start: () => here.start(),
    stop: () => here.stop(false),
    log: () => output.show(),
    menu: () => menu(here, diffs)
  };
}
function show(bar, here, diffs) {
  const { state, sessions, paused } = here.status;
  const names = [...new Set(sessions.map((s) => s.name))];
  const waits = diffs.waiting > 0 ? ` $(git-compare) ${diffs.place} of ${diffs.waiting}` : "";
  bar.text = state === "running" ? `$(${paused ? "eye-closed" : "eye"}) ${names.join(", ") || "pollux"}${waits}` : `$(circle-slash) pollux`;
  bar.tooltip = state !== "running" ? `pollux: ${state}` : sessions.length === 0 ? "pollux: no agent is connected" : paused ? "pollux: paused, no agent hears what you look at" : `pollux: ${names.join(", ")} ${names.length === 1 ? "hears" : "hear"} which files you have open, where the cursor is, and what you select`;
  bar.backgroundColor = diffs.waiting > 0 ? new vscode7.ThemeColor("statusBarItem.warningBackground") : void 0;
}
async function menu(here, diffs) {
  const items = [
    ...diffs.waiting > 0 ? [["Show the next proposal", "next"], ["Accept", "accept"], ["Reject", "reject"], ["Accept all of this session", "acceptAll"]] : [],
    ["Run an agent in a terminal", "run"],
    ["Send this file or selection to an agent", "send"],
    ["Past proposals, and undo", "history"],
    ["Rules", "rules"],
    here.status.paused ? ["Resume: agents hear what I look at", "resume"] : ["Pause: no agent hears what I look at", "pause"],
    here.status.state === "running" ? ["Stop the companion", "stop"] : ["Start the companion", "start"],
    ["Show the log", "log"]
  ];
  const picked = await vscode7.window.showQuickPick(
    items.map(([label, command]) => ({ label, command })),
    { title: "pollux" }
  );
  if (picked) await vscode7.commands.executeCommand(`pollux.${picked.command}`);
}
async function send(here, uri) {
  const editor = vscode7.window.activeTextEditor;
  const target = uri ?? (editor == null ? void 0 : editor.document.uri);
  if ((target == null ? void 0 : target.scheme) !== "file") throw new Error("There is no file to send.");
  const argument = { uri: target.toString() };
  if (editor && !editor.selection.isEmpty && editor.document.uri.toString() === target.toString()) {
    argument.first = editor.selection.start.line + 1;
    argument.last = editor.selection.end.line + (editor.selection.end.character > 0 ? 1 : 0);
  }
  const { sessions } = here.status;
  if (sessions.length > 1) {
    const picked = await vscode7.window.showQuickPick(
      sessions.map((s) => ({ label: s.name, id: s.id })),
      { title: "Send to" }
    );
    if (!picked) return;
    argument.session = picked.id;
  }
  const words = await vscode7.window.showInputBox({ title: `Send ${path3.basename(target.fsPath)}`, prompt: "Words that follow in the agent's prompt, or none. Nothing is submitted.", ignoreFocusOut: true });
  if (words === void 0) return;
  argument.words = words;
  const sent = await here.execute("pollux.mention", argument);
  vscode7.window.setStatusBarMessage(`${path3.basename(target.fsPath)}: sent to ${(sent == null ? void 0 : sent.session) ?? "the agent"}`, 5e3);
}
async function run() {
  const agent = await vscode7.window.showQuickPick(agents, { title: "Run an agent" });
  if (!agent) return;
  const open = vscode7.window.terminals.find((t) => t.name === agent && t.exitStatus === void 0);
  if (open) return open.show();
  const terminal = vscode7.window.createTerminal({ name: agent, location: { viewColumn: vscode7.ViewColumn.Beside } });
  terminal.show();
  terminal.sendText(agent);
}
// Annotate the CommonJS export names for ESM import in node:
0 && (module.exports = {
  activate,
  deactivate
});
