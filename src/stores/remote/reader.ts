// Reader: reads without locks, one snapshot per round trip.
//
// reader.E1. Reads that are requested at the same time, or while all read connections are busy, share a round trip: a process
//   that reads hundreds of runs needs a few round trips.
// reader.E2. When shared queries fail, each caller's queries are sent again alone: no caller gets an error of another one.
// reader.E3. Contents are read after the rows that refer to them, in another snapshot. They never change, and go only with their run.

import type { PayloadCipher } from "../payload-cipher.ts";
import type { Contents } from "../contents/run-contents.ts";
import { assembleRows } from "./assemble-rows.ts";
import { decodePayloads } from "./encode-payloads.ts";
import { ConnectionError, type QueryResult } from "./backend.ts";
import type { ConnectionPool } from "./connection-pool.ts";
import { withRetry, type RetryOptions } from "./retry.ts";
import type { Query } from "./query.ts";
import type { AnyRow, RowOf, TableName } from "../rows/tables.ts";
import { ReadRows } from "./read-rows.ts";

interface PendingRead {
  readonly queries: readonly Query[];
  readonly resolve: (results: readonly QueryResult[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Queries in one round trip. */
const MAX_QUERIES = 256;

export class Reader {
  readonly #pool: ConnectionPool;
  readonly #options: RetryOptions;
  readonly #retryForMs: number;
  readonly #cipher: () => PayloadCipher | undefined;
  readonly #contents: () => Contents;
  readonly #atOnce: number;
  #pending: PendingRead[] = [];
  #running = 0;

  /** `atOnce`: the number of read connections. */
  constructor(
    pool: ConnectionPool,
    atOnce: number,
    options: RetryOptions,
    retryForMs: number,
    cipher: () => PayloadCipher | undefined,
    contents: () => Contents,
  ) {
    this.#pool = pool;
    this.#atOnce = atOnce;
    this.#options = options;
    this.#retryForMs = retryForMs;
    this.#cipher = cipher;
    this.#contents = contents;
  }

  /** Runs `body` on rows; several round trips where one result leads to the next query. `isStored`: payloads are not assembled. */
  async withRows<T>(what: string, body: (rows: ReadRows) => T, isStored = false): Promise<T> {
    const rows = new ReadRows();
    for (;;) {
      let result: T | undefined;
      try {
        result = body(rows);
      } catch (error) {
        if (!rows.isGuess) throw error;
      }
      if (!rows.isGuess) return result as T;
      const queries = rows.takeMissing();
      const results = await this.read(what, queries, isStored);
      for (const [index, query] of queries.entries()) rows.addResult(query, results[index]!);
    }
  }

  /** One snapshot for all queries. */
  async read(what: string, queries: readonly Query[], isStored = false): Promise<readonly (readonly AnyRow[])[]> {
    if (queries.length === 0) return [];
    const rows = await this.#readStored(what, queries);
    if (isStored) return rows;
    const tables = queries.map(({ table }) => table);
    await assembleRows(this.#contents(), tables, rows, (more) => this.#readStored(what, more));
    return rows;
  }

  #readStored(what: string, queries: readonly Query[]): Promise<readonly (readonly AnyRow[])[]> {
    return withRetry(
      this.#options,
      what,
      async () => {
        const results = await this.#enqueue(queries);
        return results.map((result, index) => decodePayloads(this.#cipher(), queries[index]!.table, result));
      },
      this.#retryForMs,
    );
  }

  /** reader.E1 */
  #enqueue(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ queries, resolve, reject });
      if (this.#pending.length === 1 && this.#running < this.#atOnce) queueMicrotask(() => this.#pump());
    });
  }

  #pump(): void {
    while (this.#running < this.#atOnce && this.#pending.length > 0) {
      this.#running += 1;
      void this.#run(this.#next()).finally(() => {
        this.#running -= 1;
        this.#pump();
      });
    }
  }

  #next(): readonly PendingRead[] {
    let count = 0;
    let upTo = 0;
    for (const { queries } of this.#pending) {
      count += queries.length;
      if (upTo > 0 && count > MAX_QUERIES) break;
      upTo += 1;
    }
    return this.#pending.splice(0, upTo);
  }

  async #run(reads: readonly PendingRead[]): Promise<void> {
    try {
      const results = await this.#read(reads.flatMap(({ queries }) => queries));
      let from = 0;
      for (const { queries, resolve } of reads) resolve(results.slice(from, (from += queries.length)));
    } catch (error) {
      const wasShared = reads.length > 1 && !(error instanceof ConnectionError && error.reason === "lost");
      for (const { queries, resolve, reject } of reads)
        // reader.E2
        if (wasShared) await this.#read(queries).then(resolve, reject);
        else reject(error);
    }
  }

  #read(queries: readonly Query[]): Promise<readonly QueryResult[]> {
    return this.#pool.use("read", ({ connection }) => connection.read(queries));
  }

  async rows<T extends TableName>(what: string, query: Query & { readonly table: T }): Promise<RowOf<T>[]> {
    const [rows = []] = await this.read(what, [query]);
    return rows as unknown as RowOf<T>[];
  }
}
