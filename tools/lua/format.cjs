// Says which Lua files stylua would write differently, and with --write writes them:
//   node tools/lua/format.cjs [--write] FILE…
'use strict';
const fs = require('node:fs');
const stylua = require('@johnnymorganz/stylua');

const args = process.argv.slice(2);
const write = args[0] === '--write';
for (const file of write ? args.slice(1) : args) {
  const config = stylua.Config.new(); // each file takes one
  config.column_width = 180;
  config.indent_type = stylua.IndentType.Spaces;
  config.indent_width = 2;
  config.quote_style = stylua.QuoteStyle.AutoPreferSingle;
  const source = fs.readFileSync(file, 'utf8');
  const formatted = stylua.formatCode(source, config, undefined, stylua.OutputVerification.Full);
  if (formatted === source) continue;
  console.error(`not formatted: ${file}; run: node tools/lua/format.cjs --write ${file}`);
  process.exitCode = 1;
  if (write) fs.writeFileSync(file, formatted);
}
