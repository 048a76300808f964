// arrow.mjs FILE: the npm package apache-arrow reads a sealed trace. Prints the schema on one line,
// then every row as one JSON list in the order of its columns; whole numbers as text.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.JUDGES, 'package.json'));
const { tableFromIPC, compressionRegistry, CompressionType } = require('apache-arrow');
const { decompress } = require('fzstd');

compressionRegistry.set(CompressionType.ZSTD, { decode: (data) => decompress(data).slice() } /* aligned */);
const table = tableFromIPC(readFileSync(process.argv[2]));
console.log(table.schema.fields.map((field) => `${field.name}: ${field.type}`).join('; '));
const shown = (value) =>
  value === null || value === undefined
    ? null
    : value instanceof Uint8Array
      ? Buffer.from(value).toString('hex')
      : String(value);
const columns = table.schema.fields.map((field) => table.getChild(field.name));
for (let row = 0; row < table.numRows; ++row) {
  console.log(JSON.stringify(columns.map((column) => shown(column.get(row)))));
}
