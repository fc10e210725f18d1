// A make-believe companion for work on the page: files in memory, three proposals, a history. `npm run dev` prints its
// address; every load of the page builds it anew. It takes any code and any token.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { createHmac, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(tmpdir(), `pollux-page-${process.pid}`);
const root = "/home/you/tidepool";
const files = new Map();
const put = (path, content) => files.set(`${root}/${path}`, { content, version: randomBytes(4).toString("hex") });
put("README.md", "# Tidepool\n\nReads tide gauges.\n");
put("src/gauge.ts", 'export interface Reading {\n  gauge: string;\n  level: number;\n}\n\nexport function describe(r: Reading): string {\n  return r.gauge + ": " + r.level;\n}\n');
put("src/index.ts", 'import { describe } from "./gauge";\n\nconsole.log(describe({ gauge: "Brest", level: 4.2 }));\n');

let nextId = 1;
const diffs = new Map();
const past = [];
let rules = [];
const pages = new Set();
const tell = (method, params, except) => pages.forEach((p) => p !== except && p.send(JSON.stringify({ jsonrpc: "2.0", method, params })));
const info = (d) => ({ id: d.id, path: d.path, filePath: d.path, isNew: d.isNew, title: d.title, owner: d.owner, opened: d.opened, edited: d.text !== d.new });

function propose(path, text, owner = "Gemini CLI #1") {
  const full = `${root}/${path}`;
  const old = files.get(full)?.content ?? "";
  const d = { id: `d${nextId++}`, path: full, isNew: !files.has(full), title: `${path} by ${owner}`, owner, opened: Date.now(), old, new: text, text, version: 1, eol: "lf" };
  diffs.set(d.id, d);
  tell("diff/opened", { diff: info(d) });
}

function settle(id, outcome, text) {
  const d = diffs.get(id);
  if (!d) throw { code: -32020, message: "this diff has been decided already" };
  diffs.delete(id);
  past.unshift({ ...info(d), at: Date.now(), outcome, undoable: outcome === "accepted", old: d.old, new: d.new, final: text ?? d.text, edited: (text ?? d.text) !== d.new });
  tell("diff/closed", { id, outcome, owner: d.owner });
  // The CLI writes what was accepted.
  if (outcome === "accepted") setTimeout(() => write(d.path, text), 150);
}

function write(path, content) {
  const version = randomBytes(4).toString("hex");
  const fresh = !files.has(path);
  files.set(path, { content, version });
  tell("file/changed", { path, version });
  if (fresh) tell("tree/changed", { dirs: [dirname(path)] });
  return version;
}

function need(map, key) {
  const value = map.get(key);
  if (!value) throw { code: -32010, message: `${key} is not there` };
  return value;
}

function list(path) {
  const dirs = new Set();
  const entries = [];
  for (const full of [...files.keys()].sort()) {
    if (!full.startsWith(`${path}/`)) continue;
    const [name, ...rest] = full.slice(path.length + 1).split("/");
    if (rest.length === 0) entries.push({ name, path: full, kind: "file" });
    else dirs.add(name);
  }
  return [...[...dirs].map((name) => ({ name, path: `${path}/${name}`, kind: "dir" })), ...entries];
}

const methods = {
  hello: () => ({ version: "dev", pid: process.pid, name: "pollux", roots: [{ path: root, name: "tidepool" }], sessions: [{ id: 1, label: "Gemini CLI #1", since: Date.now() }], diffs: [...diffs.values()].map(info), rules, platform: "linux" }),
  ping: () => ({}),
  "tree/list": ({ path }) => ({ entries: list(path), truncated: false }),
  "tree/find": ({ query }) => ({ files: [...files.keys()].filter((f) => f.includes(query)), truncated: false }),
  "file/read": ({ path }) => ({ path, ...need(files, path), eol: "lf", bom: false, finalNewline: true, readOnly: false }),
  "file/save": ({ path, content, baseVersion, force }) => {
    if (!force && need(files, path).version !== baseVersion) throw { code: -32014, message: "changed on disk" };
    return { version: write(path, content) };
  },
  "file/create": ({ path, dir }) => (dir || write(path, ""), {}),
  "file/rename": ({ from, to }) => (files.set(to, need(files, from)), files.delete(from), tell("tree/changed", { dirs: [dirname(to)] }), {}),
  "file/delete": ({ path }) => (files.delete(path), tell("file/changed", { path, version: null }), {}),
  "context/update": (report) => console.log("context", JSON.stringify(report).slice(0, 200)),
  "diff/read": ({ id }) => need(diffs, id),
  "diff/edit": ({ id, text, clientId }, page) => {
    const d = need(diffs, id);
    d.text = text;
    tell("diff/text", { id, text, version: ++d.version, clientId }, page);
  },
  "diff/accept": ({ id, text }) => (settle(id, "accepted", text), {}),
  "diff/reject": ({ id }) => (settle(id, "rejected"), {}),
  "policy/set": (rule) => {
    rules = [...rules.filter((r) => r.owner !== rule.owner || r.pattern !== rule.pattern), rule];
    return { rules };
  },
  "history/list": () => ({ entries: past }),
  "history/read": ({ id }) => need(new Map(past.map((p) => [p.id, p])), id),
  "history/undo": ({ id }) => {
    const entry = need(new Map(past.map((p) => [p.id, p])), id);
    write(entry.path, entry.old);
    entry.undoable = false;
    return {};
  },
};

const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain" };
const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://x").pathname;
  try {
    const index = path === "/";
    if (index) execFileSync(process.execPath, [join(here, "../build.mjs"), out], { stdio: "inherit" });
    const file = index ? "index.html" : path.replace(/^\/assets\//, "");
    let body = await readFile(join(out, file));
    const nonce = randomBytes(12).toString("hex");
    if (index) body = body.toString().replace("__CSP_NONCE__", nonce);
    response.setHeader("Content-Type", types[extname(file)] ?? "application/octet-stream");
    response.setHeader("Content-Security-Policy", `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; connect-src 'self' ws://${request.headers.host}; img-src 'self' data:; base-uri 'none'; form-action 'none'`);
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});

/** The companion's side of the proof (internal/editor/web/proof.go), with one secret that everybody may know. */
const secret = Buffer.alloc(32, "dev");
function prover(page, origin) {
  let pageNonce = "";
  let done = false;
  const nonce = randomBytes(32).toString("base64url");
  const mac = (role) => createHmac("sha256", secret).update(["pollux.v2", role, origin, pageNonce, nonce].join("\n")).digest();
  return (message) => {
    if (done) return false;
    if (message.nonce) {
      pageNonce = message.nonce;
      page.send(JSON.stringify({ nonce, proof: mac("companion").toString("base64url") }));
    } else {
      done = true;
      page.send(JSON.stringify({ key: Buffer.from(mac("key").map((b, i) => b ^ secret[i])).toString("base64url") }));
    }
    return true;
  };
}

new WebSocketServer({ server, path: "/ws", handleProtocols: () => "pollux.v2" }).on("connection", (page, request) => {
  const welcome = prover(page, `http://${request.headers.host}`);
  pages.add(page);
  page.on("close", () => pages.delete(page));
  page.on("message", (data) => {
    if (welcome(JSON.parse(data))) return;
    const { id, method, params } = JSON.parse(data);
    if (!method) return;
    let answer;
    try {
      if (!methods[method]) throw { code: -32601, message: `unknown method ${method}` };
      answer = { result: methods[method](params, page) };
    } catch (e) {
      answer = { error: { code: e.code ?? -32603, message: e.message ?? String(e) } };
    }
    if (id !== undefined) page.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
});

propose("src/gauge.ts", files.get(`${root}/src/gauge.ts`).content.replace('r.gauge + ": " + r.level', "`${r.gauge}: ${r.level.toFixed(2)} m`"));
propose("src/tides.ts", 'import type { Reading } from "./gauge";\n\nexport const highest = (rs: Reading[]) => rs.reduce((a, b) => (a.level > b.level ? a : b));\n', "Gemini CLI #2");
propose("README.md", "# Tidepool\n\nReads tide gauges and draws them.\n", "Gemini CLI #2");
server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/#code=${secret.toString("base64url")}`));
