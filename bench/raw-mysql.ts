// The raw limit on MySQL and MariaDB, with the plain driver: a transaction is one text of several statements.

import { escape, type RowDataPacket } from "mysql2";
import { createConnection, type Connection } from "mysql2/promise";
import { RAW_TABLES, type Action, type Row, type RawDriver, type Table } from "./raw-driver.ts";

export async function mysqlSpeaker(url: string): Promise<RawDriver> {
  const connection = await createConnection({ uri: url, multipleStatements: true });
  await connection.query("set session transaction isolation level read committed");
  const ours = (table: Table): string => `reprise_${table}`;
  const raw = (table: Table): string => `raw_${table}`;
  return {
    async bytes() {
      const [rows] = await connection.query<RowDataPacket[]>(
        "select sum(data_length + index_length) as bytes from information_schema.tables where table_schema = database()",
      );
      return Number(rows[0]!["bytes"]);
    },
    async read(table, afterRun, order) {
      const columns = await writtenColumns(connection, ours(table));
      const [rows] = await connection.query<RowDataPacket[]>(
        `select ${columns.map((column) => `\`${column}\``).join(", ")} from ${ours(table)} where run > ? order by ${order.replaceAll("at,", "`at`,")}`,
        [afterRun],
      );
      return rows as Row[];
    },
    async copyTables() {
      for (const table of RAW_TABLES)
        await connection.query(`drop table if exists ${raw(table)}; create table ${raw(table)} like ${ours(table)}`);
    },
    async transact(actions) {
      await connection.query(["begin", ...actions.map((action) => statementOf(action, raw)), "commit"].join(";\n"));
    },
    close: () => connection.end(),
  };
}

/** The columns that are not generated. */
async function writtenColumns(connection: Connection, table: string): Promise<readonly string[]> {
  const [rows] = await connection.query<RowDataPacket[]>(
    `select column_name as name from information_schema.columns
      where table_schema = database() and table_name = ? and extra not like '%GENERATED%' order by ordinal_position`,
    [table],
  );
  return rows.map((row) => String(row["name"]));
}

const KEYS: Partial<Record<Table, readonly string[]>> = {
  runs: ["run"],
  queue: ["run", "item"],
  readiness: ["run", "node"],
};

function statementOf(action: Action, named: (table: Table) => string): string {
  const tuple = (row: Row, columns: readonly string[]): string =>
    `(${columns.map((column) => literal(row[column])).join(", ")})`;
  const quoted = (columns: readonly string[]): string => columns.map((column) => `\`${column}\``).join(", ");
  const tuples = (columns: readonly string[]): string => action.rows.map((row) => tuple(row, columns)).join(", ");
  if ("insert" in action) {
    const columns = Object.keys(action.rows[0]!);
    return `insert into ${named(action.insert)} (${quoted(columns)}) values ${tuples(columns)}`;
  }
  const table = "update" in action ? action.update : action.remove;
  const keys = KEYS[table]!;
  if ("remove" in action) return `delete from ${named(table)} where (${quoted(keys)}) in (${tuples(keys)})`;
  // Existing rows are updated; no other form accepts many values at once on all servers.
  const sets = action.columns.map((column) => `t.\`${column}\` = u.\`${column}\``).join(", ");
  const columns = [...keys, ...action.columns];
  const selects = action.rows.map(
    (row) => `select ${columns.map((column) => `${literal(row[column])} as \`${column}\``).join(", ")}`,
  );
  const on = keys.map((key) => `t.\`${key}\` = u.\`${key}\``).join(" and ");
  return `update ${named(table)} t join (${selects.join(" union all ")}) u on ${on} set ${sets}`;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (value instanceof Uint8Array) return `x'${Buffer.from(value).toString("hex")}'`;
  return escape(value as string | number);
}
