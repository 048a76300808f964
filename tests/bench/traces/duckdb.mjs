// duckdb.mjs A B THREADS: both runs' JSON Lines joined by key, and the first difference by iteration and sequence.
import { DuckDBInstance } from '@duckdb/node-api';

const [, , a, b, threads] = process.argv;
const instance = await DuckDBInstance.create(':memory:', { threads });
const connection = await instance.connect();
const columns = `{event: 'VARCHAR', iteration: 'BIGINT', microbatch: 'BIGINT', name: 'VARCHAR', occurrence: 'BIGINT',
  phase: 'VARCHAR', rank: 'BIGINT', sequence: 'BIGINT', metadata: 'STRUCT(role VARCHAR)',
  fields: 'STRUCT(role VARCHAR, "value" VARCHAR)', tensor: 'STRUCT(digest VARCHAR, multiset VARCHAR, shape BIGINT[], dtype VARCHAR)'}`;
const run = (folder) => `(select *, coalesce(metadata.role, fields.role) as role
  from read_json('${folder}/rank_*.jsonl', format = 'newline_delimited', columns = ${columns}))`;
const reader = await connection.runAndReadAll(
  `select coalesce(a.iteration, b.iteration) as i, coalesce(a.sequence, b.sequence) as s, coalesce(a.rank, b.rank) as r,
     coalesce(a.name, b.name) as n, count(*) over () as different
   from ${run(a)} a full join ${run(b)} b
     on a.rank = b.rank and a.iteration = b.iteration and a.microbatch is not distinct from b.microbatch and a.phase = b.phase
       and a.event = b.event and a.name = b.name and a.occurrence = b.occurrence and a.role is not distinct from b.role
   where a.rank is null or b.rank is null or a.tensor is distinct from b.tensor or a.fields is distinct from b.fields
   order by i, s limit 1`);
console.log(String(reader.getRows()[0]));
