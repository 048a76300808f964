// polars.mjs FILE: the npm package nodejs-polars, Arrow in Rust, reads a sealed trace. Prints the names of
// the columns on one line, then every row as one JSON list in their order; numbers as text. The package
// hands no bytes to JavaScript: digest_tail is null.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.JUDGES, 'package.json'));
const pl = require('nodejs-polars');

const table = pl.readIPC(readFileSync(process.argv[2]));
console.log(table.columns.join(' '));
const shown = table.columns.map((name) =>
  name === 'digest_tail' ? pl.lit(null).alias(name) : pl.col(name).cast(pl.Utf8),
);
for (const row of table.select(...shown).rows()) console.log(JSON.stringify(row));
