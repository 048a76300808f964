// The same question to DuckDB, on one thread: every loss by iteration.
import { DuckDBInstance } from '@duckdb/node-api';

const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
const connection = await instance.connect();
const reader = await connection.runAndReadAll(
  `select count(*), sum("lm loss") from read_json(?, format = 'newline_delimited',
     columns = {iteration: 'BIGINT', "lm loss": 'DOUBLE', "grad-norm": 'DOUBLE', "num-zeros": 'BIGINT', "learning-rate": 'DOUBLE'})
   where iteration is not null`, [process.argv[2]]);
console.log(String(reader.getRows()[0]));
