// RowStore: the rules over rows in memory, on a simulated database, with nothing else around them.

import { openSimBackend } from "../../simulation/store/sim-backend.ts";
import type { EventSubscription, Outcome, RunNumber, Write } from "../../../src/kernel/index.ts";
import { applyRules, applyWrites, type ApplyResult } from "../../../src/stores/remote/apply-writes.ts";
import type { QueryResult, Connection, WireRow } from "../../../src/stores/remote/backend.ts";
import { columnsOf, columnType, SHARED, TABLES, type TableName } from "../../../src/stores/rows/tables.ts";
import type { AccessMode } from "../../../src/stores/remote/locks.ts";
import type { Rows } from "../../../src/stores/rows/rows.ts";
import { ReadRows } from "../../../src/stores/remote/read-rows.ts";
import { WorkingSet } from "../../../src/stores/remote/working-set.ts";
import { isRefill } from "../../../src/stores/rules/write-one-by-one.ts";
import type { Tx } from "../../../src/stores/rules/transaction.ts";

export type TableRows = Record<string, readonly Readonly<Record<string, unknown>>[]>;

const CLAIMS: ReadonlySet<Write["write"]> = new Set(["claim-turns", "claim-items", "claim-messages"]);
/** More rounds than any list needs. */
const MOST_ROUNDS = 60;

export class RowStore {
  readonly #now: () => number;
  #backend;
  #connection: Connection | undefined;
  #batch = 0;
  /** The events that are written (run-event.E1). */
  subscriptions: readonly EventSubscription[] | undefined;
  /** The round trips of the last call, and their queries. */
  rounds = 0;
  asked: string[] = [];

  constructor(now: () => number) {
    this.#now = now;
    this.#backend = openSimBackend({ now });
  }

  /** Claims never share a transaction with other writes, except refills (queue.Q5). */
  async write(
    now: number,
    nextRun: RunNumber,
    writes: readonly Write[],
    isFederated = false,
  ): Promise<readonly Outcome[]> {
    this.rounds = 0;
    this.asked = [];
    const outcomes: Outcome[] = [];
    let next = nextRun;
    for (const list of segments(writes)) {
      const mode: AccessMode = isClaim(list[0]!) ? "claim" : "write";
      const applied = await this.#commit((ws) =>
        applyWrites(
          ws,
          { mode, now, nextRun: next, settings: { isFederated, subscriptions: this.subscriptions } },
          list,
        ),
      );
      outcomes.push(...applied.outcomes);
      next = applied.nextRun;
    }
    return outcomes;
  }

  /** Runs any other work in a transaction. */
  transact<T>(now: number, work: (tx: Tx) => T): Promise<T> {
    this.rounds = 0;
    this.asked = [];
    return this.#commit((ws) =>
      applyRules(ws, (rows) => work({ rows, now, nextRun: undefined, subscriptions: this.subscriptions })),
    );
  }

  async read<T>(work: (rows: Rows) => T): Promise<T> {
    const connection = await this.#open();
    const rows = new ReadRows();
    for (let round = 0; round < MOST_ROUNDS; round++) {
      let result: T | undefined;
      try {
        result = work(rows);
      } catch (error) {
        if (!rows.isGuess) throw error;
      }
      if (!rows.isGuess) return result as T;
      const queries = rows.takeMissing();
      const found = await connection.read(queries);
      queries.forEach((query, index) => rows.addResult(query, readable(query.table, found[index]!) as never));
    }
    throw new Error("no end of queries");
  }

  async #commit<T>(attempt: (ws: WorkingSet) => ApplyResult<T>): Promise<T> {
    const connection = await this.#open();
    const ws = new WorkingSet();
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const tried = attempt(ws);
      if ("result" in tried) {
        const changes = ws.changes();
        const outcome = await connection.commit(++this.#batch, this.#now(), changes);
        if (outcome !== "committed") throw new Error(`the twin's commit was ${outcome}`);
        return tried.result;
      }
      this.rounds += 1;
      const answers = await connection.query(tried.queries);
      this.asked.push(JSON.stringify(tried.queries));
      ws.reset();
      for (const [index, query] of tried.queries.entries()) ws.addResult(query, readable(query.table, answers[index]!));
    }
    throw new Error(`no end of queries:\n${this.asked.join("\n")}`);
  }

  async #open(): Promise<Connection> {
    return (this.#connection ??= await this.#backend.connect());
  }

  /** Replaces all rows by those of SQLite, after calls that this store does not support. */
  load(rows: TableRows): void {
    this.#backend = openSimBackend({ now: this.#now });
    this.#connection = undefined;
    for (const table of SHARED) {
      const its = this.#backend.server.database.table(table);
      for (const row of rows[table] ?? []) its.set(its.keyOf(row as WireRow), row as WireRow);
    }
  }

  dump(): TableRows {
    const tables: TableRows = {};
    for (const table of SHARED) {
      const rows = [...this.#backend.server.database.table(table).all()];
      tables[table] = readable(table, rows);
    }
    return inOrder(tables);
  }
}

function isClaim(write: Write): boolean {
  return CLAIMS.has(write.write) && !isRefill(write);
}

function segments(writes: readonly Write[]): readonly (readonly Write[])[] {
  const lists: Write[][] = [];
  for (const write of writes) {
    const last = lists.at(-1);
    if (last !== undefined && isClaim(last[0]!) === isClaim(write)) last.push(write);
    else lists.push([write]);
  }
  return lists;
}

/** Payloads as text. */
function readable(table: TableName, rows: QueryResult): WireRow[] {
  const payloads = columnsOf(table).filter((column) => columnType(table, column) === "payload");
  if (payloads.length === 0) return rows.map((row) => ({ ...row }));
  return rows.map((row) => {
    const plain = { ...row };
    for (const column of payloads) {
      const value = plain[column];
      if (value instanceof Uint8Array) plain[column] = Buffer.from(value).toString("utf8");
    }
    return plain;
  });
}

/** Tags by their order: SQLite has no position column. */
export function inOrder(tables: TableRows): TableRows {
  const tags = [...(tables["tags"] ?? [])].sort((a, b) => Number(a["position"]) - Number(b["position"]));
  const ranks = new Map<unknown, number>();
  const ranked = tags.map((tag): Readonly<Record<string, unknown>> => {
    const rank = (ranks.get(tag["run"]) ?? 0) + 1;
    ranks.set(tag["run"], rank);
    return { run: tag["run"], tag: tag["tag"], position: rank };
  });
  const sorted: TableRows = {};
  for (const [table, rows] of Object.entries({ ...tables, tags: ranked })) {
    const { key } = TABLES[table as TableName];
    const text = (row: Readonly<Record<string, unknown>>): string => JSON.stringify(key.map((column) => row[column]));
    sorted[table] = rows
      .map((row) => Object.fromEntries(columnsOf(table as TableName).map((column) => [column, row[column]])))
      .sort((a, b) => (text(a) < text(b) ? -1 : 1));
  }
  return sorted;
}
