// History: returns a database to an earlier state under running workers, as an operator or a failover does.
//
// `save` copies the database; `restore` restores exactly that copy. Connections stay open.
//
// PostgreSQL: `pg_dump`, later `pg_restore --clean --single-transaction`. MariaDB: each table is copied in one snapshot and
// copied back under LOCK TABLES, which is what `mariadb-dump --single-transaction` and its replay do, without the package of
// the client. SQLite: the online backup API, later the same API with the live file as its destination.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { createConnection, type Connection, type RowDataPacket } from "mysql2/promise";
import { findPostgres } from "../../scripts/servers.mjs";
import { kindOf } from "./definitions.ts";

export interface History {
  /** Copies the database, under a name. */
  save(name?: string): Promise<void>;
  /** Restores the copy with this name. */
  restore(name?: string): Promise<void>;
}

const run = promisify(execFile);

/** `folder`: for the copies. */
export function historyOf(url: string, folder: string): History {
  const kind = kindOf(url);
  const file = (name: string): string => join(folder, `history-${name}`);
  if (kind === "sqlite") return sqliteHistory(url.slice("sqlite:".length), file);
  return kind === "postgres" ? postgresHistory(url, file) : mysqlHistory(url);
}

function postgresHistory(url: string, file: (name: string) => string): History {
  const program = (name: string): string => join(findPostgres()!, name);
  return {
    save: async (name = "saved") => {
      await run(program("pg_dump"), ["--format=custom", "--compress=0", `--file=${file(name)}`, `--dbname=${url}`]);
    },
    restore: async (name = "saved") => {
      const options = ["--clean", "--if-exists", "--single-transaction", `--dbname=${url}`];
      // It may deadlock with workers; an operator repeats the command then.
      await retryOn(/deadlock detected/, () => run(program("pg_restore"), [...options, file(name)]));
    },
  };
}

function mysqlHistory(url: string): History {
  const database = new URL(url).pathname.slice(1);
  const copyOf = (name: string): string => `${database}_${name}`;
  return {
    save: (name = "saved") =>
      connected(url, async (db) => {
        const copy = copyOf(name);
        await db.query(`drop database if exists ${copy}`);
        await db.query(`create database ${copy}`);
        const tables = await tablesOf(db, database);
        for (const table of tables) await db.query(`create table ${copy}.${table} like ${database}.${table}`);
        await db.query("set session transaction isolation level repeatable read");
        await db.query("start transaction with consistent snapshot");
        for (const table of tables) await copyRows(db, table, database, copy);
        await db.query("commit");
      }),
    restore: (name = "saved") =>
      connected(url, async (db) => {
        const copy = copyOf(name);
        const tables = await tablesOf(db, copy);
        const locked = tables.map((table) => `${database}.${table} write, ${copy}.${table} read`);
        await db.query("set autocommit = 0");
        await db.query(`lock tables ${locked.join(", ")}`);
        for (const table of tables) {
          await db.query(`delete from ${database}.${table}`);
          await copyRows(db, table, copy, database);
        }
        await db.query("commit");
        await db.query("unlock tables");
      }),
  };
}

async function connected(url: string, work: (db: Connection) => Promise<void>): Promise<void> {
  const db = await createConnection(url);
  try {
    await work(db);
  } finally {
    db.destroy();
  }
}

async function tablesOf(db: Connection, database: string): Promise<readonly string[]> {
  const [rows] = await db.query<RowDataPacket[]>(
    "select table_name as name from information_schema.tables where table_schema = ? and table_type = 'BASE TABLE' order by 1",
    [database],
  );
  return rows.map((row) => row["name"] as string);
}

/** Without generated columns, as a dump is. */
async function copyRows(db: Connection, table: string, from: string, to: string): Promise<void> {
  const [rows] = await db.query<RowDataPacket[]>(
    "select column_name as name from information_schema.columns where table_schema = ? and table_name = ? and extra not like '%GENERATED%'",
    [to, table],
  );
  const columns = rows.map((row) => `\`${row["name"] as string}\``).join(", ");
  await db.query(`insert into ${to}.${table} (${columns}) select ${columns} from ${from}.${table}`);
}

/** More pages than any test has: the copy is one step, under one lock. */
const ALL_PAGES = 1_000_000;

function sqliteHistory(path: string, file: (name: string) => string): History {
  const copy = async (from: string, to: string): Promise<void> => {
    const db = new DatabaseSync(from, { readOnly: true, timeout: 5_000 });
    try {
      // The destination is locked by workers now and then, which Node reports as `not an error`; `sqlite3 .restore` waits, too.
      await retryOn(/locked|busy|not an error/i, () => backup(db, to, { rate: ALL_PAGES }));
    } finally {
      db.close();
    }
  };
  return {
    save: (name = "saved") => copy(path, file(name)),
    restore: (name = "saved") => copy(file(name), path),
  };
}

const TRIES = 200;

async function retryOn(trouble: RegExp, work: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return void (await work());
    } catch (error) {
      if (tries === TRIES || !trouble.test(String(error))) throw error;
      await sleep(10);
    }
  }
}
