// Builds the page into internal/editor/web/assets, the same bytes from the same sources on every machine.
import { build } from "esbuild";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../internal/editor/web/assets"));

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.ts" },
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  entryNames: "[name]",
  chunkNames: "c-[hash]",
  metafile: true,
  write: false,
});

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
for (const file of result.outputFiles) await writeFile(file.path, file.contents);

const outputs = Object.entries(result.metafile.outputs).map(([path, o]) => [resolve(here, path), o]);
const entry = outputs.find(([path]) => path === join(out, "app.js"))[1];
const eager = new Set();
const follow = (imports) => {
  for (const i of imports) {
    const path = resolve(here, i.path);
    if (i.kind !== "import-statement" || eager.has(path)) continue;
    eager.add(path);
    follow(outputs.find(([p]) => p === path)[1].imports);
  }
};
follow(entry.imports);
const preload = [...eager].sort().map((path) => `<link rel="modulepreload" href="/assets/${relative(out, path)}">`);
const html = await readFile(join(here, "src/index.html"), "utf8");
await writeFile(join(out, "index.html"), html.replace("<!-- modulepreload -->", preload.join("\n")));
await writeFile(join(out, "icon.svg"), await readFile(join(here, "src/icon.svg")));
await writeFile(join(out, "LICENSES.txt"), await licences(Object.keys(result.metafile.inputs)));

const size = (paths) => outputs.filter(([p]) => paths(p)).reduce((n, [, o]) => n + o.bytes, 0);
const kilo = (n) => `${(n / 1000).toFixed(0)} kB`;
console.log(`first load ${kilo(size((p) => eager.has(p) || p === join(out, "app.js") || p.endsWith(".css")) + html.length)}, in all ${kilo(size(() => true) + html.length)}, ${outputs.length} files`);

/** The notices of every package that has code in the build. */
async function licences(inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input.split(sep).join("/"));
    if (match) packages.add(match[1]);
  }
  let text = "The editor page contains code of these packages.\n";
  for (const name of [...packages].sort()) {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((f) => /^licen[cs]e/i.test(f));
    const notice = file ? (await readFile(join(folder, file), "utf8")).replaceAll("\r\n", "\n").trim() : `Licence: ${license}`;
    text += `\n${"=".repeat(72)}\n${name} ${version}\n\n${notice}\n`;
  }
  return text;
}
