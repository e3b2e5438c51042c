// Scratch copy: a snapshot of the whole store in a SQLite file. A backup is such a file; `check` runs SQLite's check on a
// temporary one, so that every integrity check is written once.
//
// scratch-copy.V1. One snapshot: read page by page where the database can keep a snapshot open, else in one read.
// scratch-copy.V2. Payloads are copied as stored, encoded or not: their encoding depends on their place, which stays the same.

import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { OnProgress, Problem } from "../../kernel/index.ts";
import { createNewFile } from "../sqlite/back-up.ts";
import { storeErrorOf } from "../sqlite/errors.ts";
import { createSchema } from "../sqlite/migrate.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../sqlite/sqlite-store.ts";
import { CONTENTS_KEY } from "../contents/outside-contents.ts";
import type { QueryResult, Connection } from "./backend.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { pagesOf, type RunQuery } from "./pages.ts";
import { withRetry, type RetryOptions } from "./retry.ts";
import type { Select } from "./query.ts";
import { columnsOf, SHARED, TABLES, type TableName } from "../rows/tables.ts";

const PAGE = 2_000;

export type CopyOptions = RetryOptions & Pick<SqliteStoreOptions, "codec" | "contents" | "locked">;

/** Writes a backup; the target file must not exist. */
export async function backUp(
  pool: ConnectionPool,
  options: RetryOptions,
  path: string,
  onProgress?: OnProgress,
): Promise<void> {
  const target = resolve(path);
  createNewFile(target);
  try {
    await copyInto(pool, options, target, onProgress);
  } catch (error) {
    rmSync(target, { force: true });
    throw storeErrorOf(error, `Backing up to ${target}`);
  }
}

export async function check(
  pool: ConnectionPool,
  options: CopyOptions,
  onProgress?: OnProgress,
): Promise<readonly Problem[]> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-check-"));
  try {
    const path = join(folder, "copy.db");
    await copyInto(pool, options, path);
    const store = await openSqliteStore({ ...options, path, durability: "relaxed" });
    try {
      return await store.check(onProgress);
    } finally {
      await store.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function copyInto(pool: ConnectionPool, options: RetryOptions, path: string, onProgress?: OnProgress): Promise<void> {
  return withRetry(options, "Copying the store", () =>
    pool.use("user", async ({ connection }) => {
      rmSync(path, { force: true });
      const copy = new Copy(path);
      try {
        await inSnapshot(connection, (run) => copy.fill(run, onProgress));
      } finally {
        copy.close();
      }
    }),
  );
}

/** scratch-copy.V1 */
async function inSnapshot(connection: Connection, work: (run: RunQuery) => Promise<void>): Promise<void> {
  if (connection.snapshot === undefined) {
    const tables = Object.keys(TABLES) as TableName[];
    const all = await connection.read(
      tables.map((table): Select => ({ kind: "select", table, where: [], lock: "none" })),
    );
    const left = new Map<TableName, QueryResult>(tables.map((table, index) => [table, all[index]!]));
    return work((query) => {
      const rows = left.get(query.table) ?? [];
      left.delete(query.table);
      return Promise.resolve(query.kind === "count" ? [{ count: rows.length }] : rows);
    });
  }
  await connection.snapshot();
  try {
    await work(async (query) => (await connection.query([query]))[0]!);
  } finally {
    if (connection.isUsable) await connection.rollback();
  }
}

class Copy {
  readonly #db: DatabaseSync;

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    // No other process opens the file before it is complete; `close` makes it durable.
    this.#db.exec("pragma journal_mode = off; pragma synchronous = off;");
    createSchema(this.#db);
  }

  async fill(run: RunQuery, onProgress: OnProgress = () => undefined): Promise<void> {
    this.#db.exec("begin");
    for (const [index, table] of SHARED.entries()) {
      const insert = this.#insertInto(table);
      for await (const page of pagesOf(run, table, PAGE)) for (const row of ordered(table, page)) insert(row);
      onProgress(index + 1, SHARED.length);
    }
    await this.#fillMeta(run);
    this.#db.exec("commit");
  }

  #insertInto(table: TableName): (row: QueryResult[number]) => void {
    const columns = columnsOf(table).filter((column) => table !== "tags" || column !== "position");
    const statement = this.#db.prepare(
      `insert into ${table} (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})`,
    );
    return (row) => void statement.run(...columns.map((column) => row[column] as SQLInputValue));
  }

  /** The codec probes, the highest numbers, and the time. */
  async #fillMeta(run: RunQuery): Promise<void> {
    const note = this.#db.prepare("insert into meta (key, value) values (?, ?) on conflict (key) do nothing");
    for await (const page of pagesOf(run, "meta", PAGE))
      for (const { key, value } of page)
        if (String(key).startsWith("codec ") || key === CONTENTS_KEY) note.run(String(key), String(value));
    for await (const page of pagesOf(run, "counters", PAGE))
      for (const { name, value } of page) this.#keepNumber(String(name), Number(value));
    let mark = 0;
    for await (const page of pagesOf(run, "writers", PAGE))
      for (const row of page) mark = Math.max(mark, Number(row["mark"]));
    this.#db.prepare("insert into writers (writer, batch, mark) values ('', 0, ?)").run(mark);
  }

  #keepNumber(counter: string, last: number): void {
    if (counter === "runs")
      this.#db.prepare("insert into meta (key, value) values ('highest run', ?)").run(String(last));
    if (counter === "workers") {
      this.#db.exec("delete from sqlite_sequence where name = 'workers'");
      this.#db.prepare("insert into sqlite_sequence (name, seq) values ('workers', ?)").run(last);
    }
  }

  close(): void {
    if (this.#db.isTransaction) this.#db.exec("rollback");
    // The next commit syncs the file, with everything written before.
    this.#db.exec("pragma synchronous = full; pragma journal_mode = wal;");
    this.#db.close();
  }
}

/** SQLite keeps tags in insertion order. */
function ordered(table: TableName, page: QueryResult): QueryResult {
  if (table !== "tags") return page;
  return page.toSorted((a, b) => Number(a["run"]) - Number(b["run"]) || Number(a["position"]) - Number(b["position"]));
}
