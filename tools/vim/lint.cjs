// Says what is wrong with Vim scripts: what the parser of Vim's language
// server does not take, and those habits of Vim's community (the rules of vint
// that a line alone can break) that keep a user's settings from changing what
// a script does:
//   node tools/vim/lint.cjs FILE…
'use strict';
const { spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const files = new Map(process.argv.slice(2).map((name) => [pathToFileURL(path.resolve(name)).href, name]));
const within = 60000; // milliseconds, for all files

function report(name, line, message) {
  console.error(`${name}:${line}: ${message}`);
  process.exitCode = 1;
}

// The rules: what a line of code without its strings and comments must not match.
const rules = [
  [/^\s*fu(nction)?!?\s[^(]*\([^)]*\)(?!.*\babort\b)/, 'a function without abort goes on after an error'],
  [/[=!]~(?![#?])/, '=~ obeys ignorecase; use =~# or =~?'],
  [/(^|\|)\s*(silent!?\s+|keep\w+\s+)*norm(al)?\s/, 'normal obeys mappings; use normal!'],
  [/(^|\|)\s*[nvxsoilct]?(un)?map!?\s/, 'a mapping that is mapped again; use nnoremap and its like'],
  [/^\s*(let|for)\s+\[?\s*(?![gbwtslav]:|[$&@])[A-Za-z_]/, 'a variable without l:, s: or another scope'],
  [/(^|\|)\s*set\s+(filetype|syntax|buftype|bufhidden|modifiable|modified|fileformat)\b/, 'an option of the buffer; use setlocal'],
];

// Blanks out strings and the comment of a line, as far as a line can tell.
function code(line) {
  if (/^\s*"/.test(line)) return '';
  return line.replace(/'(?:[^']|'')*'|"(?:\\.|[^"\\])*"/g, (s) => (s.length > 1 ? s[0] + ' '.repeat(s.length - 2) + s[0] : s)).replace(/\s"[^"]*$/, '');
}

function habits(name, text) {
  let group = false;
  text.split('\n').forEach((raw, i) => {
    const line = code(raw);
    for (const [rule, message] of rules) if (rule.test(line)) report(name, i + 1, message);
    const augroup = /^\s*augroup\s+(\S+)/.exec(line);
    if (augroup) group = augroup[1] !== 'END';
    else if (!group && /(^|\|)\s*(execute\s+')?au(tocmd)?\s/.test(raw)) report(name, i + 1, 'an autocommand without a group is made again each time');
  });
  if (/[^\x00-\x7f]/.test(text.replace(/^\s*".*$/gm, '')) && !/^scriptencoding utf-8$/m.test(text)) report(name, 1, 'letters beyond ASCII need scriptencoding utf-8');
}

// The language server, asked over its standard input for the parser's errors.
function parse() {
  const server = spawn(process.execPath, [require.resolve('vim-language-server/bin/index.js'), '--stdio'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const left = new Set(files.keys());
  const timer = setTimeout(() => { left.forEach((uri) => report(files.get(uri), 1, 'the language server did not answer')); server.kill(); }, within);
  server.on('exit', (status) => {
    clearTimeout(timer);
    if (left.size > 0 && status) report('vim-language-server', 0, `ended with ${status}`);
  });
  const send = (message) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const take = (message) => {
    if (message.id === 1 && message.result) {
      send({ method: 'initialized', params: {} });
      for (const [uri, name] of files) {
        send({ method: 'textDocument/didOpen', params: { textDocument: { uri, languageId: 'vim', version: 1, text: fs.readFileSync(name, 'utf8') } } });
      }
    } else if (message.method === 'textDocument/publishDiagnostics' && left.delete(message.params.uri)) {
      for (const d of message.params.diagnostics) report(files.get(message.params.uri), d.range.start.line + 1, d.message);
      if (left.size === 0) server.kill();
    } else if (message.method && message.id !== undefined) send({ id: message.id, result: null });
  };
  let buffer = Buffer.alloc(0);
  server.stdout.on('data', (data) => {
    buffer = Buffer.concat([buffer, data]);
    for (let head; (head = buffer.indexOf('\r\n\r\n')) >= 0; ) {
      const end = head + 4 + Number(/Content-Length: (\d+)/i.exec(buffer.subarray(0, head).toString())[1]);
      if (buffer.length < end) return;
      const body = buffer.subarray(head + 4, end).toString();
      buffer = buffer.subarray(end);
      take(JSON.parse(body));
    }
  });
  send({ id: 1, method: 'initialize', params: { processId: process.pid, rootUri: null, capabilities: {}, initializationOptions: {
    isNeovim: false, iskeyword: '@,48-57,_,192-255,-#', vimruntime: '', runtimepath: '', diagnostic: { enable: true }, suggest: {},
    indexes: { runtimepath: false, gap: 100, count: 3, projectRootPatterns: ['.git'] },
  } } });
}

for (const name of files.values()) habits(name, fs.readFileSync(name, 'utf8'));
if (files.size > 0) parse();
