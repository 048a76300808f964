// canonicalize.mjs LINES: every line is a JSON text that must be its own canonical form (RFC 8785) by
// the npm package of that name. Prints the number of lines; exit 1 at the first that is not.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.JUDGES, 'package.json'));
const loaded = require('canonicalize');
const canonicalize = loaded.default ?? loaded;

const lines = readFileSync(process.argv[2], 'utf8').split('\n').filter((line) => line !== '');
for (const [number, line] of lines.entries()) {
  const other = canonicalize(JSON.parse(line));
  if (other !== line) {
    console.log(`line ${number + 1}: ${line}\nshould be: ${other}`);
    process.exit(1);
  }
}
console.log(lines.length);
