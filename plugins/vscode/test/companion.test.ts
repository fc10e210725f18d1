// The end of a companion, by an orderly stop and by a kill (SPEC L-4).
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import * as vscode from "vscode";
import { Companion } from "../src/companion";
import type { Diffs } from "../src/diff";

interface Heard {
  pid: number;
  method: string;
  params: any;
}

/** A window with a companion that writes down what it hears, and views that wait. */
async function opened(t: TestContext, views: string[]): Promise<{ here: Companion; heard: () => Heard[]; until: (ok: () => boolean) => Promise<void>; cleared: () => boolean }> {
  const dir = mkdtempSync(join(tmpdir(), "pollux-companion-"));
  const [program, log] = [join(dir, "pollux"), join(dir, "heard")];
  writeFileSync(log, "");
  writeFileSync(
    program,
    `#!${process.execPath}
    require("node:readline").createInterface({ input: process.stdin }).on("line", (l) => {
      const { id, method, params } = JSON.parse(l);
      require("node:fs").appendFileSync(${JSON.stringify(log)}, JSON.stringify({ pid: process.pid, method, params }) + "\\n");
      if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: {} }) + "\\n");
      if (method === "exit") process.exit(0);
    });\n`,
    { mode: 0o700 },
  );
  (vscode as any).settings.path = program;
  let cleared = false;
  const diffs = { announce: () => views, kept: views.length > 0, flush: () => {}, connect: () => {}, clear: async () => (cleared = true) };
  const variables = { clear: () => {}, replace: () => {} };
  const here = new Companion(diffs as unknown as Diffs, variables as any, "", { appendLine: () => {} } as any);
  t.after(() => {
    here.dispose();
    rmSync(dir, { recursive: true, force: true });
  });
  const heard = (): Heard[] => readFileSync(log, "utf8").split("\n").slice(0, -1).map((l) => JSON.parse(l));
  const until = async (ok: () => boolean): Promise<void> => {
    for (const deadline = Date.now() + 30_000; !ok(); ) {
      assert.ok(Date.now() < deadline, JSON.stringify(heard()));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  here.start();
  await until(() => here.status.state === "running");
  return { here, heard, until, cleared: () => cleared };
}

test("one that lives is told to stop", async (t) => {
  const { here, heard, cleared } = await opened(t, ["a view"]);
  await here.stop(true);
  assert.deepEqual(heard().filter((h) => h.method === "shutdown").map((h) => h.params), [{ keep: true }]);
  assert.equal(new Set(heard().map((h) => h.pid)).size, 1);
  assert.equal(cleared(), false);
});

for (const [when, keep, noticed] of [
  ["left", true, true],
  ["left at once", true, false],
  ["stopped", false, true],
] as const) {
  test(`where one was killed and the window is ${when}, another one hears what waits`, async (t) => {
    const { here, heard, until, cleared } = await opened(t, ["typed since"]);
    process.kill(heard()[0]!.pid, "SIGKILL");
    if (noticed) await until(() => here.status.state === "waiting");
    await here.stop(keep);
    await until(() => heard().at(-1)?.method === "shutdown");
    const [first, last] = heard().slice(-2);
    assert.equal(first!.method, "initialize");
    assert.notEqual(first!.pid, heard()[0]!.pid);
    assert.deepEqual(first!.params.initializationOptions.pollux.openDiffs, ["typed since"]);
    assert.deepEqual(last!.params, { keep });
    assert.equal(cleared(), !keep);
    assert.equal(here.status.state, "stopped");
  });
}

test("where nothing waits, no other one is started", async (t) => {
  const { here, heard, until } = await opened(t, []);
  process.kill(heard()[0]!.pid, "SIGKILL");
  await until(() => here.status.state === "waiting");
  await here.stop(true);
  await new Promise((resolve) => setTimeout(resolve, 500)); // behind the 200 ms after which one that is wanted starts again
  assert.equal(new Set(heard().map((h) => h.pid)).size, 1);
});

test("one key pauses and resumes, pressed again before pollux has told its status, or has answered", async (t) => {
  const { here, heard, until } = await opened(t, []);
  const said = (): string[] => heard().filter((h) => h.method === "workspace/executeCommand").map((h) => h.params.arguments[0].state);
  await here.share();
  assert.equal(here.status.paused, true);
  await here.share();
  await Promise.all([here.share(), here.share()]);
  await here.share("paused");
  await here.share("paused");
  await here.share();
  await until(() => said().length === 7);
  assert.deepEqual(said(), ["paused", "on", "paused", "on", "paused", "paused", "on"]);
  await here.stop(false);
  await assert.rejects(here.share(), /does not run/);
  assert.equal(here.status.paused, false);
});
