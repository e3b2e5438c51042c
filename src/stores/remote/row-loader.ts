// RowLoader: loads the rows of one transaction and keeps its locks in order (remote.L1).
//
// row-loader.D1. Runs are locked by number, lowest first. Runs requested by id are first looked up without a lock.
// row-loader.D2. A transaction that needs a lock which comes before one it holds restarts and takes all locks in order. Waiting
//   could deadlock, which databases detect late: PostgreSQL after a second.

import { invariant } from "../../base/index.ts";
import type { RunNumber } from "../../kernel/index.ts";
import type { PayloadCipher } from "../payload-cipher.ts";
import type { Contents } from "../contents/run-contents.ts";
import { assembleRows } from "./assemble-rows.ts";
import { decodePayloads } from "./encode-payloads.ts";
import type { PooledConnection } from "./connection-pool.ts";
import type { RowCache } from "./row-cache.ts";
import { mergeQueries } from "./merge-queries.ts";
import { isByRunNumber, lockRank, runsByNumber } from "./lock-order.ts";
import type { Query } from "./query.ts";
import type { AnyRow, RowOf } from "../rows/tables.ts";
import type { WorkingSet } from "./working-set.ts";

export class RowLoader {
  readonly #on: PooledConnection;
  readonly #ws: WorkingSet;
  readonly #isOrdered: boolean;
  readonly #cipher: PayloadCipher | undefined;
  readonly #contents: Contents | undefined;
  readonly #cache: RowCache;
  /** Runs to lock with the first queries. */
  readonly #firstRuns: readonly RunNumber[];
  /** The highest rank locked so far, and the highest number of a locked run. */
  #rank = 0;
  #highestRun = 0;
  readonly sent: Query[] = [];
  /** Runs that were looked up without a lock. */
  readonly found: RunNumber[] = [];

  constructor(
    on: PooledConnection,
    ws: WorkingSet,
    isOrdered: boolean,
    cipher: PayloadCipher | undefined,
    contents: Contents | undefined,
    cache: RowCache,
    firstRuns: readonly RunNumber[],
  ) {
    this.#on = on;
    this.#ws = ws;
    this.#isOrdered = isOrdered;
    this.#cipher = cipher;
    this.#contents = contents;
    this.#cache = cache;
    this.#firstRuns = firstRuns;
  }

  /** False: the transaction must restart (row-loader.D2). */
  async load(missing: readonly Query[]): Promise<boolean> {
    const isFirst = this.sent.length === 0;
    this.sent.push(...missing);
    let queries = mergeQueries(isFirst ? [...runsByNumber(this.#firstRuns), ...missing] : missing);
    if (this.#isOrdered) {
      const numbers = await this.#numbersOf(queries, isFirst);
      if (numbers === undefined) return false;
      if (numbers.length > 0) queries = mergeQueries([...runsByNumber(numbers), ...queries]);
      if (!this.#isInOrder(queries)) return false;
    }
    const results = await this.#on.connection.query(queries);
    invariant(results.length === queries.length, "the database returned another number of results than queries");
    const rows = queries.map(({ table }, index) => decodePayloads(this.#cipher, table, results[index]!));
    if (this.#contents !== undefined)
      await assembleRows(
        this.#contents,
        queries.map(({ table }) => table),
        rows,
        (more) => this.#readContents(more),
      );
    for (const [index, query] of queries.entries()) this.#addResult(query, rows[index]!);
    return true;
  }

  async #readContents(queries: readonly Query[]): Promise<readonly (readonly AnyRow[])[]> {
    const results = await this.#on.connection.query(queries);
    return queries.map(({ table }, index) => decodePayloads(this.#cipher, table, results[index]!));
  }

  #addResult(query: Query, rows: readonly AnyRow[]): void {
    const rank = lockRank(query);
    if (rank < NO_LOCK) this.#rank = Math.max(this.#rank, rank);
    if (rank === RUNS) for (const row of rows) this.#highestRun = Math.max(this.#highestRun, row["run"] as RunNumber);
    this.#ws.addResult(query, rows);
  }

  /** row-loader.D1. Undefined when a run comes before a lock that is held. */
  async #numbersOf(queries: readonly Query[], isFirst: boolean): Promise<readonly RunNumber[] | undefined> {
    const others = queries.filter((query) => lockRank(query) === RUNS && !isByRunNumber(query));
    if (others.length === 0) return [];
    // The first lock of a transaction is in order.
    const isAlone = isFirst && !queries.some(isByRunNumber);
    if (isAlone && others.length === 1 && idsOf(others[0]!).length === 1) return [];
    const hints = this.#cachedNumbers(others);
    const numbers = hints ?? (await this.#readNumbers(others));
    this.found.push(...numbers);
    const isAfter = this.#rank === RUNS && numbers.every((run) => run >= this.#highestRun);
    return isAfter ? numbers : undefined;
  }

  /** The numbers last seen for these ids, if all of them are cached. */
  #cachedNumbers(queries: readonly Query[]): readonly RunNumber[] | undefined {
    const numbers: RunNumber[] = [];
    for (const id of queries.flatMap(idsOf)) {
      const number = id === undefined ? undefined : this.#cache.numberOf(id);
      if (number === undefined) return undefined;
      numbers.push(number);
    }
    return numbers;
  }

  async #readNumbers(queries: readonly Query[]): Promise<readonly RunNumber[]> {
    const results = await this.#on.connection.query(queries.map((query) => ({ ...query, lock: "none" }) as Query));
    return results.flatMap((rows) => (rows as unknown as RowOf<"runs">[]).map(({ run }) => run));
  }

  /** row-loader.D2 */
  #isInOrder(queries: readonly Query[]): boolean {
    return queries.every((query) => {
      const rank = lockRank(query);
      if (rank === NO_LOCK) return true;
      if (rank < this.#rank) return false;
      return !isByRunNumber(query) || query.keys.every(([run]) => (run as RunNumber) >= this.#highestRun);
    });
  }
}

const RUNS = 0;
const NO_LOCK = 3;

/** The ids of a query; undefined when it does not find runs by id. */
function idsOf(query: Query): readonly (string | undefined)[] {
  if (query.kind === "lookup" && query.columns[0] === "id") return query.keys.map(([id]) => id as string);
  if (query.kind !== "select") return [undefined];
  const id = query.where.find((one) => one.column === "id" && one.is === "=");
  return [id?.is === "=" ? (id.value as string) : undefined];
}
