// Row twins: the row port on a SQLite database in memory, and over a working set on a simulated server, with the same rows.

import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { QueryResult, Connection, WireRow } from "../../../src/stores/remote/backend.ts";
import type { AccessMode } from "../../../src/stores/remote/locks.ts";
import { Miss } from "../../../src/stores/remote/miss.ts";
import { ReadRows } from "../../../src/stores/remote/read-rows.ts";
import { TransactionRows } from "../../../src/stores/remote/transaction-rows.ts";
import { WorkingSet } from "../../../src/stores/remote/working-set.ts";
import type { Rows } from "../../../src/stores/rows/rows.ts";
import {
  columnsOf,
  columnType,
  PAYLOADS,
  SHARED,
  type AnyRow,
  type TableName,
} from "../../../src/stores/rows/tables.ts";
import { createSchema } from "../../../src/stores/sqlite/migrate.ts";
import { SqliteRows } from "../../../src/stores/sqlite/sqlite-rows.ts";
import { openSimBackend } from "../../simulation/store/sim-backend.ts";
import { inOrder, type TableRows as Tables } from "../differential/row-store.ts";

/** More than any list of calls needs when each round loads what one call misses. */
const MOST_ROUNDS = 1_000;

/** A payload as the codec of the twin writes it: with the place that it was written for. */
type Encoded = readonly [run: number, place: string, field: string, text: string];

export class SqliteTwin {
  readonly #db = new DatabaseSync(":memory:");
  readonly rows: SqliteRows;
  readonly #withCodec: boolean;

  constructor(withCodec: boolean) {
    createSchema(this.#db);
    this.#withCodec = withCodec;
    this.rows = new SqliteRows(this.#db, withCodec);
    this.#db.function("reprise_encode", (value, run, place, field) => {
      if (value === null) return null;
      return Buffer.from(JSON.stringify([run, String(place), field, value]));
    });
    this.#db.function("reprise_decode", (value, run, place, field) => {
      if (value === null) return null;
      const [itsRun, itsPlace, itsField, text] = decoded(Buffer.from(value as Uint8Array).toString());
      assert.deepEqual([itsRun, itsPlace, itsField], [run, String(place), field], "a payload has another place");
      return text;
    });
  }

  begin(): void {
    this.#db.exec("begin immediate");
  }

  commit(): void {
    this.#db.exec("commit");
  }

  /** All rows of a table, with the names and types of the port. */
  all(table: TableName): AnyRow[] {
    const columns = columnsOf(table).map((column: string) => {
      if (table === "tags" && column === "position") return "rowid as position";
      return columnType(table, column) === "payload" ? `cast(${column} as text) as ${column}` : `"${column}"`;
    });
    const rows = this.#db.prepare(`select ${columns.join(", ")} from ${table}`).all();
    const payload = this.#withCodec ? PAYLOADS[table]?.column : undefined;
    return rows.map((row) => {
      const plain = { ...row } as AnyRow;
      if (payload !== undefined && plain[payload] !== null) plain[payload] = decoded(String(plain[payload]))[3];
      return plain;
    });
  }

  dump(): Tables {
    return inOrder(Object.fromEntries(SHARED.map((table) => [table, this.all(table)])));
  }

  close(): void {
    this.#db.close();
  }
}

function decoded(text: string): Encoded {
  return JSON.parse(text) as Encoded;
}

export class RemoteTwin {
  readonly #backend = openSimBackend({ now: () => 0 });
  #connection: Connection | undefined;
  #batch = 0;
  /** The round trips of the last transaction. */
  rounds = 0;

  load(tables: Tables): void {
    for (const table of SHARED) {
      const its = this.#backend.server.database.table(table);
      for (const row of tables[table] ?? []) its.set(its.keyOf(row as WireRow), row as WireRow);
    }
  }

  dump(): Tables {
    return inOrder(
      Object.fromEntries(
        SHARED.map((table) => [table, readable([...this.#backend.server.database.table(table).all()])]),
      ),
    );
  }

  /** Calls the body until it finds all its rows loaded, then commits. Returns the result of the last call. */
  async transact<T>(mode: AccessMode, mayGuess: boolean, body: (rows: Rows) => T): Promise<T> {
    const connection = (this.#connection ??= await this.#backend.connect());
    const ws = new WorkingSet();
    for (this.rounds = 0; this.rounds < MOST_ROUNDS; this.rounds++) {
      ws.reset();
      const rows = new TransactionRows(ws, mode, mayGuess);
      try {
        const result = body(rows);
        if (!rows.isGuess) {
          const outcome = await connection.commit(++this.#batch, 0, ws.changes());
          if (outcome !== "committed") throw new Error(`the commit ended as ${outcome}`);
          return result;
        }
      } catch (error) {
        if (!(error instanceof Miss) && !rows.isGuess) throw error;
      }
      const queries = ws.takeMissing();
      if (queries.length === 0) throw new Error("rows were missed, but no query was recorded");
      const answers = await connection.query(queries);
      ws.reset();
      for (const [at, query] of queries.entries()) ws.addResult(query, readable(answers[at]!));
    }
    throw new Error("no end of queries");
  }

  /** Reads outside of a transaction. */
  async read<T>(body: (rows: Rows) => T): Promise<T> {
    const connection = (this.#connection ??= await this.#backend.connect());
    const rows = new ReadRows();
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const result = body(rows);
      const queries = rows.takeMissing();
      if (queries.length === 0) return result;
      const answers = await connection.read(queries);
      for (const [at, query] of queries.entries()) rows.addResult(query, readable(answers[at]!) as AnyRow[]);
    }
    throw new Error("no end of queries");
  }
}

/** Payloads as text. */
function readable(rows: QueryResult): WireRow[] {
  return rows.map((row) => {
    const plain: WireRow = {};
    for (const [column, value] of Object.entries(row))
      plain[column] = value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : value;
    return plain;
  });
}
