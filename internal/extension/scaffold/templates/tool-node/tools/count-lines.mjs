#!/usr/bin/env node
// Counts the lines of a text file. Arguments come as --name value; the answer goes to standard output.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { file: { type: 'string' } } });
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
console.log(JSON.stringify({ lines: lines.length, empty: lines.filter((line) => line.trim() === '').length }));
