import assert from "node:assert/strict";
import { test } from "node:test";
import { debounce, throttle } from "../src/core/throttle";
import { ContextReporter } from "../src/files/context";
import { Connection, timing } from "../src/net/connection";
import { Code, RpcError, type ContextReport } from "../src/net/protocol";
import { FakeClock, FakeSocket, settle } from "./fakes";

function harness() {
  const clock = new FakeClock();
  const sockets: FakeSocket[] = [];
  const states: string[] = [];
  const connection: Connection = new Connection({
    clock,
    dial: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket;
    },
    greet: async () => void (await connection.request("hello", { clientId: "test" })),
    answer: async (method) => {
      if (method === "ask") return { choice: "yes" };
      throw new RpcError(Code.methodNotFound, "no");
    },
  });
  connection.changed.on((s) => states.push(s));
  const last = () => sockets[sockets.length - 1] as FakeSocket;
  const open = async () => {
    connection.connect();
    last().onopen?.();
    await settle();
  };
  return { clock, sockets, states, connection, last, open };
}

test("a connection is open once it has greeted", async () => {
  const t = harness();
  t.connection.connect();
  assert.equal(t.connection.state, "connecting");
  await assert.rejects(t.connection.request("ping", {}), { code: Code.offline });
  t.last().onopen?.();
  await settle();
  assert.deepEqual(t.states, ["open"]);
  assert.equal(t.last().sent[0]?.method, "hello");
});

test("a lost connection is tried again with a growing pause, and the pause starts anew after success", async () => {
  const t = harness();
  await t.open();
  t.last().onclose?.({ code: 1006, reason: "" });
  assert.equal(t.connection.state, "lost");
  const pauses: number[] = [];
  for (let i = 0; i < 7; i++) {
    const before = t.clock.now();
    const count = t.sockets.length;
    while (t.sockets.length === count) await t.clock.pass(50);
    pauses.push(t.clock.now() - before);
    t.last().onclose?.({ code: 1006, reason: "" });
  }
  assert.deepEqual(pauses, [250, 500, 1000, 2000, 4000, 5000, 5000]);
  await t.clock.pass(5000);
  t.last().onopen?.();
  await settle();
  assert.equal(t.connection.state, "open");
  t.last().onclose?.({ code: 1006, reason: "" });
  const count = t.sockets.length;
  await t.clock.pass(timing.firstRetry);
  assert.equal(t.sockets.length, count + 1);
});

test("an unanswered ping ends the connection after its time; answered pings keep it", async () => {
  const t = harness();
  await t.open();
  await t.clock.pass(60_000);
  assert.equal(t.connection.state, "open");
  const pings = t.last().sent.filter((m) => m.method === "ping").length;
  assert.ok(pings >= 5 && pings <= 6, `${pings} pings in a minute`);
  const silent = t.last();
  delete silent.answers.ping;
  await t.clock.pass(timing.ping + timing.pong);
  assert.equal(t.connection.state, "lost");
  assert.ok(silent.closed);
});

test("a socket that never opens is given up", async () => {
  const t = harness();
  t.connection.connect();
  await t.clock.pass(timing.dial);
  assert.equal(t.connection.state, "lost");
});

test("a greeting that fails is a lost connection", async () => {
  const t = harness();
  t.connection.connect();
  t.last().answers = {};
  t.last().onopen?.();
  await settle();
  t.last().push({ id: 1, error: { code: -32603, message: "no" } });
  await settle();
  assert.equal(t.connection.state, "lost");
});

test("a refused token is not tried again", async () => {
  const t = harness();
  t.connection.connect();
  t.last().onclose?.({ code: 4401, reason: "" });
  assert.equal(t.connection.state, "denied");
  await t.clock.pass(60_000);
  assert.equal(t.sockets.length, 1);
});

test("a page that may not come in is told why", async () => {
  const t = harness();
  t.connection.connect();
  t.last().onclose?.({ code: 4403, reason: "an agent opened this" });
  assert.equal(t.connection.state, "denied");
  assert.equal(t.connection.barred, "an agent opened this");
});

test("requests get their own answers, errors keep code and data, and a break rejects what waits", async () => {
  const t = harness();
  await t.open();
  const first = t.connection.request("file/read", { path: "/a" });
  const second = t.connection.request("file/delete", { path: "/b" });
  const waiting = t.connection.request("history/list", {});
  const id = (method: string) => t.last().sent.find((m) => m.method === method)?.id;
  t.last().push({ id: id("file/delete"), error: { code: Code.changedOnDisk, message: "changed", data: { version: "2" } } });
  t.last().push({ id: id("file/read"), result: { content: "x" } });
  await assert.rejects(second, (e: RpcError) => e.code === Code.changedOnDisk && (e.data as { version: string }).version === "2");
  assert.equal((await first).content, "x");
  t.last().onclose?.({ code: 1006, reason: "" });
  await assert.rejects(waiting, { code: Code.offline });
});

test("notifications reach their listeners, foreign ones nobody, broken ones do no harm", async () => {
  const t = harness();
  const heard: string[] = [];
  t.connection.on("bye", ({ reason }) => heard.push(reason));
  await t.open();
  t.last().onmessage?.({ data: "{" });
  t.last().push({ method: "unheard/of", params: {} });
  t.last().push({ method: "bye", params: { reason: "stop" } });
  await settle();
  assert.deepEqual(heard, ["stop"]);
});

test("the companion's requests are answered, unknown ones refused", async () => {
  const t = harness();
  await t.open();
  t.last().push({ id: 7, method: "ask", params: {} });
  t.last().push({ id: 8, method: "other", params: {} });
  await settle();
  assert.deepEqual(t.last().sent.find((m) => m.id === 7)?.result, { choice: "yes" });
  assert.equal(t.last().sent.find((m) => m.id === 8)?.error?.code, Code.methodNotFound);
});

test("an old socket has no say after a new one", async () => {
  const t = harness();
  await t.open();
  const old = t.last();
  old.onclose?.({ code: 1006, reason: "" });
  const { onclose } = old;
  await t.clock.pass(timing.firstRetry);
  t.last().onopen?.();
  await settle();
  onclose?.({ code: 1006, reason: "" });
  assert.equal(t.connection.state, "open");
});

test("a throttle runs at the end of its interval with the last state, never later (C-2)", async () => {
  const clock = new FakeClock();
  const runs: number[] = [];
  const f = throttle(() => runs.push(clock.now()), 50, clock);
  for (let i = 0; i < 20; i++) {
    f();
    await clock.pass(10);
  }
  assert.deepEqual(runs, [50, 100, 150, 200]);
  f();
  f.flush();
  f.flush();
  assert.equal(runs.length, 5);
  f();
  f.cancel();
  await clock.pass(100);
  assert.equal(runs.length, 5);
});

test("a debounce waits for calls to cease", async () => {
  const clock = new FakeClock();
  let runs = 0;
  const f = debounce(() => runs++, 50, clock);
  for (let i = 0; i < 5; i++) {
    f();
    await clock.pass(40);
  }
  assert.equal(runs, 0);
  await clock.pass(10);
  assert.equal(runs, 1);
});

test("a debounce that is never left alone runs all the same", async () => {
  const clock = new FakeClock();
  const runs: number[] = [];
  const f = debounce(() => runs.push(clock.now()), 50, clock, 200);
  for (let i = 0; i < 25; i++) {
    f();
    await clock.pass(20);
  }
  await clock.pass(100);
  assert.deepEqual(runs, [200, 400, 530]);
});

test("context is reported throttled, without repeats, at once on focus, and again after a gap (C-2)", async () => {
  const t = harness();
  await t.open();
  let report: ContextReport = { focused: true, active: null, open: [], dirty: [] };
  const reporter = new ContextReporter(t.connection, () => report, t.clock);
  const sent = () => t.last().sent.filter((m) => m.method === "context/update").length;
  reporter.touch();
  reporter.touch();
  assert.equal(sent(), 0);
  await t.clock.pass(50);
  assert.equal(sent(), 1);
  reporter.touch();
  await t.clock.pass(50);
  assert.equal(sent(), 1, "nothing changed");
  report = { ...report, focused: false };
  reporter.now();
  assert.equal(sent(), 2);
  t.last().onclose?.({ code: 1006, reason: "" });
  await t.clock.pass(timing.firstRetry);
  t.last().onopen?.();
  await settle();
  reporter.repeat();
  assert.equal(sent(), 1, "the new connection is told although nothing changed");
});
