// Mirror staging: a private temporary database beside the connection of a mirror (mirror.M1). SQLite keeps it in a file without a name,
// which ends with the process.

import type { StatementSync } from "node:sqlite";
import type { RunNumber } from "../../kernel/index.ts";
import { COPIED_TABLES } from "../rules/copied-run.ts";
import type { AnyRow } from "../rows/tables.ts";
import { insertSql, storedColumns } from "./row-sql.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

const TABLES = ["journal", "checkpoints", ...COPIED_TABLES] as const;
type StagedTable = (typeof TABLES)[number];
/** Rows of a run in the store that its copy replaces. */
const REPLACED = [...TABLES, "tags"] as const;

export class MirrorStaging {
  readonly #connection: SqliteConnection;
  readonly #inserts = new Map<StagedTable, StatementSync>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const { db, cipher } = connection;
    db.exec("attach database '' as staging");
    for (const table of TABLES) {
      db.exec(`create table staging.${table} as select * from main.${table} where 0`);
      const text = insertSql(table, cipher !== undefined).replace(`into ${table} `, `into staging.${table} `);
      this.#inserts.set(table, db.prepare(text));
    }
  }

  /** Payloads are encoded here, for the number that the run will have. */
  add(table: StagedTable, rows: readonly object[]): void {
    if (rows.length === 0) return;
    const { db } = this.#connection;
    const insert = this.#inserts.get(table)!;
    const columns = storedColumns(table);
    db.exec("begin");
    try {
      for (const row of rows as readonly AnyRow[]) insert.run(...columns.map((column) => row[column] ?? null));
      db.exec("commit");
    } catch (error) {
      if (db.isTransaction) db.exec("rollback");
      throw error;
    }
  }

  /** Inside of the transaction that makes the run visible. */
  moveTo(run: RunNumber, replaces: boolean): void {
    const { db } = this.#connection;
    if (replaces) for (const table of REPLACED) db.prepare(`delete from main.${table} where run = ?`).run(run);
    for (const table of TABLES) {
      const columns = storedColumns(table)
        .map((column) => `"${column}"`)
        .join(", ");
      db.prepare(
        `insert into main.${table} (${columns}) select ${columns} from staging.${table} where run = ? order by rowid`,
      ).run(run);
    }
  }

  clear(): void {
    for (const table of TABLES) this.#connection.db.exec(`delete from staging.${table}`);
  }

  /** For a connection that stays open; closing it ends the temporary database, too. */
  close(): void {
    const { db } = this.#connection;
    if (db.isOpen && !db.isTransaction) db.exec("detach database staging");
  }
}
