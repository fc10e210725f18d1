// Bundles each test/*.test.ts and runs them under node:test.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = await mkdtemp(join(here, "../.tmp-test-"));
try {
  const files = (await readdir(here)).filter((f) => f.endsWith(".test.ts"));
  await build({ entryPoints: files.map((f) => join(here, f)), outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, alias: { vscode: join(here, "vscode.mjs") }, platform: "node", format: "esm", target: "node20", logLevel: "error" });
  process.exitCode = spawnSync(process.execPath, ["--test", ...(await readdir(out)).map((f) => join(out, f))], { stdio: "inherit" }).status ?? 1;
} finally {
  await rm(out, { recursive: true, force: true });
}
