// An MCP server over standard input and output, without dependencies: one JSON-RPC message a line.
// Gemini CLI starts it with every session, outside any sandbox. Nothing else may be printed to standard output.
import { createInterface } from 'node:readline';

const tools = [
  {
    name: 'reverse',
    description: 'Reverses a text.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
];

const methods = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'EXTENSION_NAME', version: '0.1.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: args }) => {
    if (name !== 'reverse') throw new Error(`there is no tool ${name}`);
    return { content: [{ type: 'text', text: [...String(args?.text ?? '')].reverse().join('') }] };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  let request;
  try {
    request = JSON.parse(line);
  } catch {
    continue;
  }
  if (request.id === undefined) continue; // a notification
  const response = { jsonrpc: '2.0', id: request.id };
  const method = Object.hasOwn(methods, request.method) ? methods[request.method] : undefined;
  if (!method) {
    response.error = { code: -32601, message: `there is no method ${request.method}` };
  } else {
    try {
      response.result = method(request.params ?? {});
    } catch (error) {
      response.error = { code: -32602, message: error.message };
    }
  }
  process.stdout.write(JSON.stringify(response) + '\n');
}
