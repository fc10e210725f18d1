#!/usr/bin/env node
// Counts the lines of a text file. Arguments come as --name value, a boolean as --name alone when it is true, a list or
// object as JSON text (JSON.parse); the answer goes to standard output.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { file: { type: 'string' }, words: { type: 'boolean' }, long: { type: 'string', default: '120' } } });
if (values.file === undefined) {
  console.error('--file is missing');
  process.exit(2);
}
let text;
try {
  text = readFileSync(values.file, 'utf8');
} catch (error) {
  console.error(`cannot read ${values.file}: ${error.code}`);
  process.exit(1);
}
const lines = text.split(/\r\n|\r|\n/);
if (lines.at(-1) === '') lines.pop();
const answer = {
  lines: lines.length,
  empty: lines.filter((line) => line.trim() === '').length,
  long: lines.filter((line) => [...line].length >= Number(values.long)).length,
};
if (values.words) answer.words = text.split(/\s+/).filter(Boolean).length;
console.log(JSON.stringify(answer));
