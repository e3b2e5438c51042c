// Home database: one SQLite file of a home, with numbered migrations and short transactions.
//
// home-database.D1. A file of another program, or with a newer schema, is refused before anything is written to it.
// home-database.D2. Commits survive a power failure: WAL with synchronous = full.
// home-database.D3. Several processes may have the file open. Writers queue for at most BUSY_MS; nothing is held between two calls.
// home-database.D4. Only the owner of the file can read it.

import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLOutputValue, type StatementSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import { isBusy, storeErrorOf } from "../../stores/index.ts";

export interface Schema {
  /** In the header of the file. */
  readonly applicationId: number;
  readonly migrations: readonly string[];
}

export interface HomeDatabaseOptions {
  /** Of a new file; SQLite's default is 4,096. */
  readonly pageSize?: number | undefined;
}

/** home-database.D3 */
const BUSY_MS = 30_000;
/** Pages in the log before SQLite copies it into the file: 16 MB with pages of 4 KB. */
const COPY_AT_PAGES = 4_000;
/** SQLite does not wait for the lock when it changes to WAL: that long, in attempts of 10 ms. */
const WAL_ATTEMPTS = 1_000;

export type Row = Record<string, SQLOutputValue>;

export class HomeDatabase {
  readonly path: string;
  readonly db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(path: string, schema: Schema, { pageSize }: HomeDatabaseOptions = {}) {
    this.path = path;
    createPrivateFile(path);
    this.db = mapped(`Opening ${path}`, () => new DatabaseSync(path, { timeout: BUSY_MS }));
    try {
      mapped(`Opening ${path}`, () => this.#prepareFile(schema, pageSize));
    } catch (error) {
      this.db.close();
      throw error;
    }
  }

  #prepareFile(schema: Schema, pageSize: number | undefined): void {
    // home-database.D1
    this.#checkSchema(schema);
    if (pageSize !== undefined && this.#pragma("page_count") === 0) this.db.exec(`pragma page_size = ${pageSize}`);
    this.#useWal();
    // home-database.D2
    this.db.exec(`pragma synchronous = full; pragma wal_autocheckpoint = ${COPY_AT_PAGES}`);
    this.db.exec("pragma fullfsync = 1; pragma checkpoint_fullfsync = 1");
    for (let version = this.#version(); version < schema.migrations.length; version = this.#version())
      this.transact(() => {
        // Read under the lock: another process may have migrated first.
        if (this.#version() !== version) return;
        this.db.exec(schema.migrations[version]!);
        this.db.exec(`pragma application_id = ${schema.applicationId}; pragma user_version = ${version + 1}`);
      });
    this.#checkSchema(schema);
  }

  #checkSchema({ applicationId, migrations }: Schema): void {
    const tables = this.get("select count(*) as tables from sqlite_schema")!["tables"];
    const found = this.#pragma("application_id");
    const version = this.#version();
    if (found !== applicationId && (found !== 0 || tables !== 0))
      throw new RepriseError(
        "STORE_NOT_REPRISE",
        `${this.path} is a SQLite database of another program. Nothing was changed. Choose another home.`,
        { details: { path: this.path } },
      );
    if (version > migrations.length)
      throw new RepriseError(
        "STORE_NEWER_SCHEMA",
        `${this.path} has schema ${version}; this version of Reprise knows schemas up to ${migrations.length}. Nothing was changed. Upgrade Reprise.`,
        { details: { path: this.path, found: version, known: migrations.length } },
      );
  }

  #useWal(): void {
    for (let attempt = 1; ; attempt += 1)
      try {
        if (this.#pragma("journal_mode") === "wal") return;
        this.db.exec("pragma journal_mode = wal");
      } catch (error) {
        if (!isBusy(error) || attempt === WAL_ATTEMPTS) throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
      }
  }

  #version(): number {
    return Number(this.#pragma("user_version"));
  }

  #pragma(name: string): unknown {
    return Object.values(this.db.prepare(`pragma ${name}`).get()!)[0];
  }

  /** A statement, compiled once. */
  sql(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.db.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  get(text: string, ...values: SqlValue[]): Row | undefined {
    return this.sql(text).get(...values);
  }

  all(text: string, ...values: SqlValue[]): Row[] {
    return this.sql(text).all(...values);
  }

  /** The number of rows that the statement changed. */
  run(text: string, ...values: SqlValue[]): number {
    return Number(this.sql(text).run(...values).changes);
  }

  /** Everything that `write` does, or nothing. A transaction in a transaction is part of it. */
  transact<T>(write: () => T): T {
    return this.#within("begin immediate", write);
  }

  /** All reads of `read` see the same state. */
  snapshot<T>(read: () => T): T {
    return this.#within("begin", read);
  }

  #within<T>(begin: string, work: () => T): T {
    if (this.db.isTransaction) return work();
    return mapped(`Using ${this.path}`, () => {
      this.db.exec(begin);
      try {
        const result = work();
        this.db.exec("commit");
        return result;
      } catch (error) {
        if (this.db.isTransaction) this.db.exec("rollback");
        throw error;
      }
    });
  }

  close(): void {
    if (this.db.isOpen) this.db.close();
  }
}

export type SqlValue = null | number | bigint | string | Uint8Array;

/** home-database.D4. SQLite gives the files beside it the same mode. */
function createPrivateFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, constants.O_CREAT | constants.O_RDWR, 0o600));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new RepriseError("STORE_IO", `Cannot create ${path} (${code}). Check the path and its permissions.`, {
      cause: error,
    });
  }
}

function mapped<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw storeErrorOf(error, what);
  }
}
