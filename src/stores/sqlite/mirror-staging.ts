// Mirror staging: a private temporary database beside the connection of a mirror (mirror.M1). SQLite keeps it in a file without a name,
// which ends with the process.

import type { StatementSync } from "node:sqlite";
import type { RunNumber } from "../../kernel/index.ts";
import { COPIED_TABLES } from "../rules/copied-run.ts";
import type { ContentBatch } from "../contents/content-batch.ts";
import { PAYLOADS, type AnyRow } from "../rows/tables.ts";
import { insertSql, storedColumns } from "./row-sql.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

const TABLES = ["journal", "checkpoints", "run_contents", ...COPIED_TABLES] as const;
type StagedTable = (typeof TABLES)[number];
/** Rows of a run in the store that its copy replaces. */
const REPLACED = [...TABLES, "tags"] as const;

export class MirrorStaging {
  readonly #connection: SqliteConnection;
  readonly #inserts = new Map<StagedTable, StatementSync>();
  /** It knows nothing of the contents that the copies may replace. */
  #batch: ContentBatch;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const { db, cipher } = connection;
    this.#batch = connection.contents.beginApart();
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
    db.exec("begin");
    try {
      this.#insert(
        table,
        rows.map((row) => this.#reduced(table, row as AnyRow)),
      );
      const added = this.#batch.added.splice(0);
      this.#insert(
        "run_contents",
        added.map(({ run, content, text }) => ({ run, content, size: text.length, data: text })),
      );
      db.exec("commit");
    } catch (error) {
      if (db.isTransaction) db.exec("rollback");
      throw error;
    }
  }

  #insert(table: StagedTable, rows: readonly AnyRow[]): void {
    const insert = this.#inserts.get(table)!;
    const columns = storedColumns(table);
    for (const row of rows) insert.run(...columns.map((column) => row[column] ?? null));
  }

  #reduced(table: StagedTable, row: AnyRow): AnyRow {
    const { column = "", contents } = PAYLOADS[table] ?? {};
    const text = row[column];
    if (contents === undefined || typeof text !== "string") return row;
    return { ...row, [column]: this.#batch.reduce(Number(row["run"]), text, contents) };
  }

  /** Inside of the transaction that makes the run visible. */
  moveTo(run: RunNumber, replaces: boolean): void {
    const { db, contents } = this.#connection;
    contents.forget(run);
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
    this.#batch = this.#connection.contents.beginApart();
  }

  /** For a connection that stays open; closing it ends the temporary database, too. */
  close(): void {
    const { db } = this.#connection;
    if (db.isOpen && !db.isTransaction) db.exec("detach database staging");
  }
}
