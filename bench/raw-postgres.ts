// The raw limit on PostgreSQL, with the plain driver: arrays of values, a pipeline per transaction.

import type { Client, ClientConfig } from "pg";
import { RAW_TABLES, type Action, type Row, type RawDriver, type Table } from "./raw-driver.ts";

interface Column {
  readonly name: string;
  readonly type: string;
}

const KEYS: Readonly<Record<Table, readonly string[]>> = {
  runs: ["run"],
  journal: ["run", "seq"],
  queue: ["run", "item"],
  checkpoints: ["run", "step"],
  arrivals: ["run", "target", "edge", "idx"],
  readiness: ["run", "node"],
};

export async function postgresSpeaker(url: string): Promise<RawDriver> {
  const { default: pg } = await import("pg");
  const client: Client = new pg.Client({ connectionString: url, pipeline: true } as ClientConfig);
  await client.connect();
  const columns = new Map<Table, readonly Column[]>();
  for (const table of RAW_TABLES) columns.set(table, await columnsOf(client, table));
  return {
    async bytes() {
      const { rows } = await client.query<{ bytes: string }>("select pg_database_size(current_database()) as bytes");
      return Number(rows[0]!.bytes);
    },
    async read(table, afterRun, order) {
      const { rows } = await client.query<Row>(`select * from reprise.${table} where run > $1 order by ${order}`, [
        afterRun,
      ]);
      return rows.map((row) => asNumbers(row, columns.get(table)!));
    },
    async copyTables() {
      await client.query("drop schema if exists raw cascade; create schema raw");
      for (const table of RAW_TABLES) {
        await client.query(`create table raw.${table} (like reprise.${table} including all)`);
        // "including all" does not copy the fillfactor.
        const { rows } = await client.query<{ options: string | null }>(
          "select array_to_string(reloptions, ', ') as options from pg_class where oid = $1::regclass",
          [`reprise.${table}`],
        );
        if (rows[0]?.options) await client.query(`alter table raw.${table} set (${rows[0].options})`);
      }
    },
    async transact(actions) {
      const sent = [
        client.query("begin"),
        ...actions.map((action) => client.query(statementOf(action, columns))),
        client.query("commit"),
      ];
      await Promise.all(sent);
    },
    close: () => client.end(),
  };
}

async function columnsOf(client: Client, table: Table): Promise<readonly Column[]> {
  const { rows } = await client.query<Column>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [`reprise.${table}`],
  );
  return rows;
}

/** The driver returns big integers as text. */
function asNumbers(row: Row, columns: readonly Column[]): Row {
  const converted: Record<string, unknown> = {};
  for (const { name, type } of columns) {
    const value = row[name];
    converted[name] = type === "bigint" && typeof value === "string" ? Number(value) : value;
  }
  return converted;
}

function statementOf(action: Action, columns: ReadonlyMap<Table, readonly Column[]>) {
  const table = "insert" in action ? action.insert : "update" in action ? action.update : action.remove;
  const named = new Map(columns.get(table)!.map((column) => [column.name, column]));
  const keys = KEYS[table];
  const used = "insert" in action ? [...named.keys()] : "update" in action ? [...keys, ...action.columns] : keys;
  const arrays = used.map((name, at) => `$${at + 1}::${named.get(name)!.type}[]`).join(", ");
  const list = used.map((name) => `"${name}"`).join(", ");
  const from = `unnest(${arrays}) as u (${list})`;
  const where = keys.map((name) => `t."${name}" = u."${name}"`).join(" and ");
  const text =
    "insert" in action
      ? `insert into raw.${table} (${list}) select * from ${from}`
      : "update" in action
        ? `update raw.${table} t set ${action.columns.map((name) => `"${name}" = u."${name}"`).join(", ")} from ${from} where ${where}`
        : `delete from raw.${table} t using ${from} where ${where}`;
  const values = used.map((name) => action.rows.map((row) => row[name] ?? null));
  return { name: nameOf(text), text, values };
}

const names = new Map<string, string>();

/** Prepared once per statement text. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) names.set(text, (name = `raw_${names.size}`));
  return name;
}
