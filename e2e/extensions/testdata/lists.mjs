// A client of MCP's own TypeScript SDK that tells what it is offered, a line of JSON for each list: all at the start, and
// each again when the server says that it has changed.
//
//   node lists.mjs SDK COMMAND ARGS…     (SDK is the folder of the SDK's ES modules)
const [sdk, command, ...args] = process.argv.slice(2);
const { Client } = await import(`${sdk}/client/index.js`);
const { StdioClientTransport } = await import(`${sdk}/client/stdio.js`);
const types = await import(`${sdk}/types.js`);

const client = new Client({ name: "lists", version: "1" }, { capabilities: {} });
const lists = {
  tools: [types.ToolListChangedNotificationSchema, async () => (await client.listTools()).tools],
  resources: [types.ResourceListChangedNotificationSchema, async () => (await client.listResources()).resources],
  prompts: [types.PromptListChangedNotificationSchema, async () => (await client.listPrompts()).prompts],
};
let last = Promise.resolve(); // one list after the other: answers to questions that are asked together may cross
const tell = (kind, changed) => {
  last = last.then(async () => {
    const names = (await lists[kind][1]()).map((one) => one.name);
    process.stdout.write(JSON.stringify({ kind, changed, names }) + "\n");
  });
  return last;
};
for (const [kind, [schema]] of Object.entries(lists)) {
  client.setNotificationHandler(schema, () => tell(kind, true).catch((err) => process.stderr.write(`${err}\n`)));
}
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
for (const kind of Object.keys(lists)) {
  if (client.getServerCapabilities()[kind]?.listChanged) await tell(kind, false);
}
process.stdin.on("end", () => client.close()).resume();
