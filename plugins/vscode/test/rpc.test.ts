// The line to the companion: pieces, answers, errors, and an end at any time.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Handlers, Peer, RpcError, tell } from "../src/rpc";

/** A peer whose other side is a script; on is what it hears of. */
function peer(script: string, on: Partial<Handlers> = {}): { peer: Peer; ended: Promise<[string, boolean]>; logged: string[] } {
  const logged: string[] = [];
  let end: (how: [string, boolean]) => void = () => {};
  const ended = new Promise<[string, boolean]>((resolve) => (end = resolve));
  const handlers: Handlers = {
    request: async () => null,
    notification: () => {},
    log: (line) => logged.push(line),
    ended: (reason, missing) => end([reason, missing]),
    ...on,
  };
  return { peer: new Peer(process.execPath, ["-e", script], handlers), ended, logged };
}

// Reads lines; say writes one message.
const reads = `const say = (m) => process.stdout.write(JSON.stringify(m) + "\\n");
  require("node:readline").createInterface({ input: process.stdin }).on("line", (l) => heard(JSON.parse(l)));`;

test("a call is answered, in pieces that cut characters, or fails with the code of the answer", async () => {
  const { peer: p, ended } = peer(`${reads} function heard(m) {
    if (m.method === "bad") return say({ id: m.id, error: { code: -32004, message: "newer" } });
    if (m.method === "exit") return process.exit(0);
    const all = Buffer.from(JSON.stringify({ id: m.id, result: "🎈" + m.params }) + "\\nno JSON\\n[1]\\nnull\\n");
    const at = all.indexOf(0xf0) + 2;
    process.stdout.write(all.subarray(0, at));
    setTimeout(() => process.stdout.write(all.subarray(at)), 20);
  }`);
  assert.equal(await p.call("good", "x".repeat(200_000)), `🎈${"x".repeat(200_000)}`);
  await assert.rejects(p.call("bad", null), (err: RpcError) => err instanceof RpcError && err.code === -32004 && err.message === "newer");
  p.notify("exit", null);
  assert.deepEqual(await ended, ["exit code 0", false]);
  await assert.rejects(p.call("good", ""), /has ended/);
});

test("a request is answered with the result or the error of its handler", async () => {
  const heard: string[] = [];
  const { ended, logged } = peer(
    `${reads} let n = 0;
    say({ id: "a", method: "one", params: { x: 1 } }); say({ id: 2, method: "two" }); say({ method: "note", params: { y: 2 } }); console.error("words");
    function heard(m) { console.error(JSON.stringify(m)); if (++n === 2) process.exit(3); }`,
    {
      request: async (method, params) => {
        if (method === "one") return params;
        throw new RpcError(-32002, "no");
      },
      notification: (method, params) => heard.push(`${method} ${params.y}`),
    },
  );
  assert.deepEqual(await ended, ["exit code 3", false]);
  assert.deepEqual(heard, ["note 2"]);
  while (logged.length < 3) await new Promise((resolve) => setTimeout(resolve, 10)); // what it said last may come after its end
  const answers = logged.filter((l) => l.startsWith("{"));
  assert.deepEqual(answers.sort(), [`{"jsonrpc":"2.0","id":"a","result":{"x":1}}`, `{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"no"}}`].sort());
  assert.ok(logged.includes("words"));
});

test("a request that is taken back is no longer waited for", async () => {
  let waited: () => boolean = () => true;
  const { ended } = peer(`${reads} say({ id: 1, method: "ask" }); say({ method: "$/cancelRequest", params: { id: 1 } }); say({ id: 2, method: "end" }); function heard(m) { if (m.id === 2) process.exit(0); }`, {
    request: (method, _, still) => (method === "ask" ? new Promise(() => (waited = still)) : Promise.resolve(waited())),
  });
  await ended;
  assert.equal(waited(), false);
});

test("an end while a call waits, and a program that is not there", async () => {
  const { peer: p, ended } = peer(`process.stdin.once("data", () => process.kill(process.pid, "SIGKILL"))`);
  await assert.rejects(p.call("x", null), /has ended/);
  assert.deepEqual(await ended, ["SIGKILL", false]);
  const missing = await new Promise<boolean>((resolve) => {
    new Peer("/nonexistent/pollux", [], { request: async () => null, notification: () => {}, log: () => {}, ended: (_, m) => resolve(m) });
  });
  assert.equal(missing, true);
});

// SPEC L-4: a window that leaves tells all, however long, to a process that no signal to its own group ends, and waits for none that is not there.
test("what is told last is heard whole, by a process that lives on", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "pollux-tell-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const out = join(dir, "heard");
  const hears = `let all = ""; process.stdin.on("data", (d) => all += d).on("end", () => {
    process.kill(-process.pid, 0); // fails where it leads no group of its own
    require("node:fs").writeFileSync(${JSON.stringify(out)}, all);
  })`;
  const text = "🎈".repeat(200_000);
  await tell(process.execPath, ["-e", hears], [["initialize", { text }], ["shutdown", { keep: true }]]);
  const deadline = Date.now() + 30_000;
  let heard = "";
  while (!heard && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    try {
      heard = readFileSync(out, "utf8");
    } catch {}
  }
  const lines = heard.split("\n");
  assert.deepEqual(lines.slice(0, 2).map((l) => JSON.parse(l)), [
    { jsonrpc: "2.0", id: 0, method: "initialize", params: { text } },
    { jsonrpc: "2.0", id: 1, method: "shutdown", params: { keep: true } },
  ]);
  await tell("/nonexistent/pollux", ["lsp"], [["initialize", {}]]);
  await tell(process.execPath, ["-e", "process.exit(0)"], [["initialize", { text }]]); // it hears nothing of it
});
