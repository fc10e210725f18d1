// The other side of the differential test: it loads the client code of the
// published Gemini CLI out of its bundle, adds exports of the functions that
// choose and normalise, and answers cases from standard input, one JSON line each.
import { registerHooks } from 'node:module';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createInterface } from 'node:readline';
import os from 'node:os';

const bundle = process.argv[2];
const names = ['getConnectionConfigFromFile', 'validateWorkspacePath', 'getIdeProcessInfo', 'detectIde',
  'IdeContextStore', 'IdeContextNotificationSchema', 'JSONRPCMessageSchema', 'getIdeServerHost', 'getStdioConfigFromEnv',
  'IdeClient', 'IdeDiffAcceptedNotificationSchema', 'IdeDiffRejectedNotificationSchema', 'IdeDiffClosedNotificationSchema'];
const core = readdirSync(bundle).filter((f) => f.startsWith('core-'))
  .map((f) => /from "\.\/(chunk-[A-Z0-9]+\.js)"/.exec(readFileSync(join(bundle, f), 'utf8'))?.[1]);
let chunk;
for (const c of core) {
  if (c && readFileSync(join(bundle, c), 'utf8').includes('function getConnectionConfigFromFile')) chunk = c;
}
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url.endsWith(chunk)) {
      loaded.source = String(loaded.source) + '\n' + names.map((n) => `export { ${n} as real_${n} };`).join('\n');
    }
    return loaded;
  },
});
const real = await import(pathToFileURL(join(bundle, chunk)).href);
const kept = { ...process.env };
for (const k of ['debug', 'log', 'info', 'warn', 'error']) console[k] = () => {};

function world(c) {
  for (const k of Object.keys(process.env)) delete process.env[k];
  Object.assign(process.env, kept);
  for (const k of Object.keys(process.env)) if (/^(GEMINI_CLI|TERM|ZED|TMP|TEMP|XCODE|SSH|VSCODE|REMOTE|CLOUD|EDITOR|POSITRON|REPLIT|CURSOR|CODESPACES|MONOSPACE|ANTIGRAVITY|__COG)/.test(k)) delete process.env[k];
  Object.assign(process.env, c.env);
  process.chdir(c.dir);
}

async function choose(c) {
  world(c);
  const info = c.tree ? await real.real_getIdeProcessInfo() : { pid: c.pid, command: c.command };
  const config = await real.real_getConnectionConfigFromFile(info.pid);
  const ide = real.real_detectIde(info, config?.ideInfo) ?? null;
  const path = config?.workspacePath ?? process.env['GEMINI_CLI_IDE_WORKSPACE_PATH'];
  const valid = real.real_validateWorkspacePath(path, process.cwd());
  return { pid: info.pid, mark: config?.mark ?? null, ide, valid: valid.isValid, error: valid.error ?? null,
    host: real.real_getIdeServerHost(), stdio: real.real_getStdioConfigFromEnv() ?? null };
}

function well(v) {
  if (typeof v === 'string') return v.toWellFormed();
  if (Array.isArray(v)) return v.map(well);
  if (v && typeof v === 'object') return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, well(x)]));
  return v;
}

function hear(c) {
  const message = real.real_JSONRPCMessageSchema.parse(JSON.parse(c.message));
  const parsed = real.real_IdeContextNotificationSchema.parse(message);
  const store = new real.real_IdeContextStore();
  store.set(parsed.params);
  return { context: well(JSON.parse(JSON.stringify(store.get()))) };
}

function settle(c) {
  const message = real.real_JSONRPCMessageSchema.parse(JSON.parse(c.message));
  const method = message.method.slice('ide/diff'.length);
  const parsed = real[`real_IdeDiff${method}NotificationSchema`].parse(message);
  return { path: parsed.params.filePath, content: parsed.params.content ?? null };
}

// climb computes the editor's process in a recorded tree, which stand-ins for ps and powershell in PATH tell.
async function climb(c) {
  world(c);
  const { pid } = process, { platform } = os;
  Object.defineProperty(process, 'pid', { value: c.pid, configurable: true });
  if (c.windows) os.platform = () => 'win32';
  try {
    return await real.real_getIdeProcessInfo();
  } finally {
    os.platform = platform;
    Object.defineProperty(process, 'pid', { value: pid, configurable: true });
  }
}

// live is a whole session: connect, a diff that the editor accepts, one that the terminal does.
async function live(c) {
  world(c);
  const cl = await real.real_IdeClient.getInstance();
  await cl.connect();
  const first = await cl.openDiff(c.paths[0], c.content);
  const waiting = cl.openDiff(c.paths[1], c.content);
  while (!cl.diffResponses.has(c.paths[1]) || cl.client._responseHandlers.size > 0) await new Promise((r) => setTimeout(r, 5));
  await cl.resolveDiffFromCli(c.paths[1], 'accepted');
  const second = await waiting;
  const answer = { status: cl.getConnectionStatus().status, diffing: cl.isDiffingEnabled(), first, second };
  await cl.disconnect();
  return answer;
}

for await (const line of createInterface({ input: process.stdin })) {
  const c = JSON.parse(line);
  let answer;
  try {
    answer = await { choose, hear, settle, climb, live }[c.do](c);
  } catch (e) {
    answer = { fault: String(e?.message ?? e).slice(0, 200) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
process.exit(0);
