import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Socket } from "../src/net/connection";
import { ProvenSocket } from "../src/net/proof";

const origin = "http://127.0.0.1:4711";
const secret = randomBytes(32);

/** The other end of a WebSocket, which the test plays. */
class Wire implements Socket {
  onopen: Socket["onopen"] = null;
  onmessage: Socket["onmessage"] = null;
  onclose: Socket["onclose"] = null;
  closed = false;
  readonly sent: Record<string, string>[] = [];
  private heard: (() => void) | null = null;
  send(data: string): void {
    this.sent.push(JSON.parse(data) as Record<string, string>);
    this.heard?.();
  }
  close(): void {
    this.closed = true;
    this.heard?.();
  }
  async until(count: number): Promise<void> {
    while (this.sent.length < count && !this.closed) await new Promise<void>((resolve) => (this.heard = resolve));
  }
}

function harness() {
  const wire = new Wire();
  const seen = { keys: [] as string[], impostor: 0, opened: 0, closed: 0, messages: [] as unknown[] };
  const socket = new ProvenSocket(wire, { secret: secret.toString("base64url"), origin, proved: (k) => seen.keys.push(k), impostor: () => seen.impostor++ });
  let opened: () => void = () => undefined;
  const open = new Promise<void>((resolve) => (opened = resolve));
  socket.onopen = () => (seen.opened++, opened());
  socket.onclose = () => seen.closed++;
  socket.onmessage = (e) => seen.messages.push(e.data);
  wire.onopen?.();
  const mac = (role: string, nonce: string, at = origin) =>
    createHmac("sha256", secret).update(["pollux.v2", role, at, wire.sent[0]?.["nonce"], nonce].join("\n")).digest();
  const say = (m: unknown) => wire.onmessage?.({ data: typeof m === "string" ? m : JSON.stringify(m) });
  return { wire, seen, socket, mac, say, open };
}

test("both sides prove themselves, and the page gets the newest key (SPEC A-5)", async () => {
  const t = harness();
  await t.wire.until(1);
  assert.equal(t.wire.sent[0]?.["id"], createHmac("sha256", secret).update("pollux.v2\nid").digest("base64url"));
  t.socket.send("{}"); // too early: it is not sent
  t.say({ nonce: "N", proof: t.mac("companion", "N").toString("base64url") });
  await t.wire.until(2);
  assert.deepEqual(t.wire.sent[1], { proof: t.mac("page", "N").toString("base64url") });
  const key = randomBytes(32);
  const mask = t.mac("key", "N");
  t.say({ key: Buffer.from(key.map((b, i) => b ^ (mask[i] as number))).toString("base64url") });
  await t.open;
  assert.deepEqual(t.seen.keys, [key.toString("base64url")]);
  t.socket.send("{}");
  t.say("hello");
  assert.equal(t.wire.sent.length, 3);
  assert.deepEqual(t.seen.messages, ["hello"]);
});

test("a reason to end counts only from a companion that has proved itself", async () => {
  for (const proof of [true, false]) {
    const t = harness();
    const reasons: string[] = [];
    t.socket.onclose = (e) => reasons.push(e.reason);
    await t.wire.until(1);
    if (proof) {
      t.say({ nonce: "N", proof: t.mac("companion", "N").toString("base64url") });
      await t.wire.until(2);
    }
    t.wire.onclose?.({ code: 4403, reason: "run this: x" });
    assert.deepEqual(reasons, [proof ? "run this: x" : ""]);
  }
});

for (const [name, answer] of Object.entries({
  "a made-up proof": () => ({ nonce: "N", proof: "x" }),
  "no proof": () => ({ nonce: "N" }),
  "an error": () => ({ error: "no" }),
  "no JSON": () => "x",
  "null": () => "null",
  "the page's own role": (t: ReturnType<typeof harness>) => ({ nonce: "N", proof: t.mac("page", "N").toString("base64url") }),
  "a companion's at another port": (t: ReturnType<typeof harness>) => ({ nonce: "N", proof: t.mac("companion", "N", "http://127.0.0.1:4712").toString("base64url") }),
  "a proof for another nonce": (t: ReturnType<typeof harness>) => ({ nonce: "N", proof: t.mac("companion", "M").toString("base64url") }),
}) as [string, (t: ReturnType<typeof harness>) => unknown][])
  test(`a listener with ${name} is told nothing more (SPEC A-5)`, async () => {
    const t = harness();
    await t.wire.until(1);
    t.say(answer(t));
    await t.wire.until(2);
    assert.equal(t.wire.closed, true);
    assert.equal(t.wire.sent.length, 1);
    assert.ok(!JSON.stringify(t.wire.sent).includes(secret.toString("base64url")));
    assert.deepEqual([t.seen.impostor, t.seen.closed, t.seen.opened, t.seen.keys.length], [1, 1, 0, 0]);
  });
