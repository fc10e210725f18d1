// Builds the extension into dist, the same bytes from the same sources on every machine.
import { build } from "esbuild";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

await build({
  absWorkingDir: dirname(fileURLToPath(import.meta.url)),
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node16",
  external: ["vscode"],
  charset: "utf8",
  legalComments: "none",
});
