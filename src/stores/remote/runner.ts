// TransactionRunner: runs one transaction, from loading its rows to a commit whose outcome is known.
//
// runner.R1. Load, apply, commit: rows that the rules miss are loaded and the rules are applied again, until nothing is missing.
// runner.R2. Pessimistic: every run is locked before its rows are read (remote.L1). Optimistic: all rows come from the cache, no
//   query is sent, and the commit verifies them. An optimistic attempt that misses a row or gets a conflict is repeated
//   pessimistically.
// runner.R3. After any error the transaction is rolled back before the runner decides what to do (rules.A9). A transaction
//   without changes is rolled back, not committed.
// runner.R4. Cached and assumed rows may be out of date until the commit verifies them. An invariant that fails over them
//   proves nothing: the transaction is repeated without them.

import { invariant, InvariantError } from "../../base/index.ts";
import type { PayloadCipher } from "../payload-cipher.ts";
import { ConnectionError, type Change } from "./backend.ts";
import type { NewContent } from "../contents/content-batch.ts";
import type { Contents } from "../contents/run-contents.ts";
import { encodePayloads, reducePayloads } from "./encode-payloads.ts";
import type { ConnectionPool, PooledConnection } from "./connection-pool.ts";
import { RowLoader } from "./row-loader.ts";
import type { RowCache } from "./row-cache.ts";
import type { BatchScope } from "./batch-scope.ts";
import type { NumberBlock, NumberAllocator } from "./number-allocator.ts";
import { refuseWrite } from "./opened-to-read.ts";
import type { CommitResolver } from "./commit-resolver.ts";
import {
  busyError,
  MAX_RECONNECTS,
  MAX_CONFLICTS,
  pause,
  pauseMs,
  unreachableError,
  type RetryOptions,
} from "./retry.ts";
import type { TxSettings } from "../rules/transaction.ts";
import type { Query } from "./query.ts";
import { WorkingSet } from "./working-set.ts";

/** The result of the rules over the loaded rows, or the queries whose rows they miss. */
export type WorkResult<T> =
  | { readonly result: T; readonly nextRun?: number | undefined }
  | { readonly queries: readonly Query[] };

export interface TransactionWork<T> {
  /** Names the operation in error messages: "Committing". */
  readonly what: string;
  /** Whether it follows the lock order (remote.L1). Work that only skips locked rows need not. */
  readonly isOrdered: boolean;
  /** Which connections it uses; default `claim`. */
  readonly use?: "write" | "claim" | "heartbeat";
  /** remote.Y6. It does not wait until the store's incarnation is known. */
  readonly isUrgent?: boolean;
  /** It reads and writes payloads as they are stored, with references to their contents. */
  readonly isStored?: boolean;
  /** Undefined for work other than a list of writes. */
  readonly scope?: BatchScope | undefined;
  /** Called several times; each call starts without the changes of the call before. */
  apply(ws: WorkingSet, now: number, nextRun: number, isOptimistic: boolean, settings: TxSettings): WorkResult<T>;
  /** Adds rows that the commit will verify. */
  assume?(ws: WorkingSet): void;
}

export interface RunnerOptions extends RetryOptions {
  readonly pool: ConnectionPool;
  readonly resolver: CommitResolver;
  readonly cache: RowCache;
  readonly runNumbers: NumberAllocator;
  readonly isOptimistic: boolean;
  readonly retryForMs: number;
  /** opened-to-read.V1 */
  readonly isReadOnly: boolean;
  readonly cipher: () => PayloadCipher | undefined;
  readonly contents: () => Contents;
  readonly now: () => number;
  /** Called after every commit. */
  readonly committed: (changes: readonly Change[]) => void;
}

/** Rounds of queries in one transaction; more is a bug. */
const MAX_ROUNDS = 1_000;

/** Working sets kept for reuse. */
const MAX_SETS = 8;

/** What one attempt passes to the next. */
interface AttemptPlan {
  readonly queries: readonly Query[];
  /** Runs to lock by number with the first queries. */
  readonly runs: readonly number[];
  /** Cached and assumed rows are not used. */
  readonly isUncached: boolean;
}

const FIRST_PLAN: AttemptPlan = { queries: [], runs: [], isUncached: false };
const UNCACHED: AttemptPlan = { ...FIRST_PLAN, isUncached: true };

type RetryReason = "order" | "conflict" | "retry" | "lost";
type AttemptResult<T> = { readonly done: T } | { readonly retry: AttemptPlan; readonly reason: RetryReason };

export class TransactionRunner {
  readonly #options: RunnerOptions;
  readonly #sets: WorkingSet[] = [];

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /** Runs work on a pooled connection, and again on another one when that is lost. */
  async run<T>(work: TransactionWork<T>): Promise<T> {
    const { pool, runNumbers, isReadOnly } = this.#options;
    if (isReadOnly) refuseWrite(work.what);
    const block = await runNumbers.take(work.scope?.starts ?? 0);
    try {
      return await this.#retry(work.what, (plan) =>
        pool.use(work.use ?? "claim", (on) => this.#attempt(on, work, block, plan), work.isUrgent),
      );
    } finally {
      runNumbers.giveBack(block);
    }
  }

  /** Runs user code and then work in one transaction on a `user` connection; a retry repeats both. */
  async runWith<T>(what: string, begin: (on: PooledConnection) => Promise<TransactionWork<T>>): Promise<T> {
    const { pool, runNumbers, isReadOnly } = this.#options;
    if (isReadOnly) refuseWrite(what);
    return this.#retry(what, () =>
      pool.use("user", async (on) => {
        let work: TransactionWork<T>;
        try {
          work = await begin(on);
        } catch (error) {
          if (on.connection.isUsable) await on.connection.rollback();
          throw error;
        }
        const block = await runNumbers.take(work.scope?.starts ?? 0);
        try {
          // The user's SQL has taken locks in an unknown order, so remote.L1 cannot be followed.
          return await this.#runPessimistic(on, { ...work, isOrdered: false }, block, UNCACHED);
        } finally {
          runNumbers.giveBack(block);
        }
      }),
    );
  }

  /** runner.R2, runner.R3. Repeats `attempt` until it is done or the retry limits are reached. */
  async #retry<T>(what: string, attempt: (plan: AttemptPlan | undefined) => Promise<AttemptResult<T>>): Promise<T> {
    const { clock, retryForMs } = this.#options;
    const start = clock.monotonic();
    let plan: AttemptPlan | undefined;
    for (let tries = 0, lost = 0, restarts = 0; ;) {
      let cause: unknown;
      let reason: RetryReason;
      try {
        const result = await attempt(plan);
        if ("done" in result) return result.done;
        plan = result.retry;
        reason = result.reason;
      } catch (error) {
        if (!(error instanceof ConnectionError)) throw error;
        cause = error;
        reason = error.reason;
      }
      if (reason === "order") {
        invariant((restarts += 1) < MAX_ROUNDS, "a transaction restarts without end to lock runs in order", { what });
        continue;
      }
      if (reason === "lost") lost += 1;
      else tries += 1;
      if (tries >= MAX_CONFLICTS) throw busyError(what, cause);
      if (lost > 0 && (clock.monotonic() - start >= retryForMs || lost >= MAX_RECONNECTS))
        throw unreachableError(what, cause);
      // After the first conflict the rows are read again without a pause.
      if (reason !== "conflict" || tries > 1) await pause(this.#options, pauseMs(this.#options, tries + lost));
    }
  }

  async #attempt<T>(
    on: PooledConnection,
    work: TransactionWork<T>,
    block: NumberBlock,
    plan: AttemptPlan | undefined,
  ): Promise<AttemptResult<T>> {
    if (plan === undefined && work.scope?.isOptimistic === true && this.#options.isOptimistic) {
      const optimistic = await this.#runOptimistic(on, work, work.scope, block);
      if (optimistic !== undefined) return optimistic;
    }
    return this.#runPessimistic(on, work, block, plan ?? FIRST_PLAN);
  }

  /** runner.R2. Undefined when a row is not cached. */
  async #runOptimistic<T>(
    on: PooledConnection,
    work: TransactionWork<T>,
    scope: BatchScope,
    block: NumberBlock,
  ): Promise<AttemptResult<T> | undefined> {
    const { cache, now } = this.#options;
    if (!cache.hasAll(scope.runs)) return undefined;
    const ws = this.#sets.pop() ?? new WorkingSet();
    cache.assumeRows(ws, scope.runs);
    work.assume?.(ws);
    let applied: WorkResult<T>;
    try {
      applied = work.apply(ws, now(), nextOf(block), true, cache);
    } catch (error) {
      // runner.R4
      if (!(error instanceof InvariantError)) throw error;
      cache.evict(scope.runs);
      return { retry: UNCACHED, reason: "conflict" };
    }
    if ("queries" in applied) {
      this.#keep(ws);
      return undefined;
    }
    const attempt = await this.#commit(on, work, ws, block, applied, FIRST_PLAN);
    this.#keep(ws);
    if (!("done" in attempt)) cache.evict(scope.runs);
    return attempt;
  }

  /** Keeps a working set for another transaction; after an error it is dropped instead. */
  #keep(ws: WorkingSet): void {
    ws.clear();
    if (this.#sets.length < MAX_SETS) this.#sets.push(ws);
  }

  async #runPessimistic<T>(
    on: PooledConnection,
    work: TransactionWork<T>,
    block: NumberBlock,
    plan: AttemptPlan,
  ): Promise<AttemptResult<T>> {
    const { cipher, contents, now, cache } = this.#options;
    const ws = this.#sets.pop() ?? new WorkingSet();
    const assembling = work.isStored === true ? undefined : contents();
    const loader = new RowLoader(on, ws, work.isOrdered, cipher(), assembling, cache, plan.runs);
    if (!plan.isUncached) work.assume?.(ws);
    const restart = async (): Promise<AttemptResult<T>> => {
      await on.connection.rollback();
      this.#keep(ws);
      return { retry: { ...plan, queries: loader.sent, runs: [...plan.runs, ...loader.found] }, reason: "order" };
    };
    try {
      if (plan.queries.length > 0 && !(await loader.load(plan.queries))) return await restart();
      let at: number | undefined;
      for (let round = 0; ; round += 1) {
        invariant(round < MAX_ROUNDS, "a transaction sends queries without end", { what: work.what });
        // One time for all rounds, so that each round sends the same queries.
        const applied = work.apply(ws, (at ??= now()), nextOf(block), false, cache);
        if ("result" in applied) {
          const attempt = await this.#commit(on, work, ws, block, applied, plan);
          this.#keep(ws);
          return attempt;
        }
        if (!(await loader.load(applied.queries))) return await restart();
      }
    } catch (error) {
      if (!(error instanceof ConnectionError && error.reason === "lost") && on.connection.isUsable)
        await on.connection.rollback();
      // runner.R4
      if (error instanceof InvariantError && !plan.isUncached) return { retry: UNCACHED, reason: "conflict" };
      throw error;
    }
  }

  async #commit<T>(
    on: PooledConnection,
    work: TransactionWork<T>,
    ws: WorkingSet,
    block: NumberBlock,
    { result, nextRun }: Extract<WorkResult<T>, { result: T }>,
    plan: AttemptPlan,
  ): Promise<AttemptResult<T>> {
    const { resolver, cache, committed, cipher, contents, now } = this.#options;
    const hasStarted = nextRun !== undefined && nextRun !== nextOf(block);
    invariant(!hasStarted || nextRun <= block.end, "a transaction starts more runs than it reserved numbers for");
    const changes = ws.changes();
    // runner.R3
    if (changes.length === 0) {
      await on.connection.rollback();
      return { done: result };
    }
    const batch = work.isStored === true ? undefined : contents().begin();
    const { outside } = contents();
    const isOutside = (content: NewContent): boolean => outside?.takes(content) === true;
    const reduced = batch === undefined ? changes : reducePayloads(batch, changes, isOutside);
    // outside-contents.O2
    const away = batch?.added.filter(isOutside) ?? [];
    if (away.length > 0) await outside!.put(away);
    const outcome = await resolver.commit(work.what, on, now(), encodePayloads(cipher(), reduced));
    if (outcome === "committed") {
      batch?.committed();
      if (hasStarted) block.next = nextRun;
      cache.update(ws, changes);
      committed(changes);
      return { done: result };
    }
    if (on.connection.isUsable) await on.connection.rollback();
    // The cached rows belong to a history that the database has lost.
    if (outcome === "rolled_back") return { retry: UNCACHED, reason: "conflict" };
    return { retry: { ...plan, isUncached: plan.isUncached || outcome === "conflict" }, reason: outcome };
  }
}

/** Without reserved numbers, a number that no run has. */
function nextOf({ next, end }: NumberBlock): number {
  return end > next ? next : Number.MAX_SAFE_INTEGER;
}
