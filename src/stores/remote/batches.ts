// Batches: group commit. Lists of writes that arrive while all write connections are busy share the next transaction.
//
// batches.G1. A list resolves when its transaction is durable; its writes stay in order and together.
// batches.G2. Claims and other polls run in their own transactions, after the list's writes, because they lock other rows. They
//   first read without locks, all in one round trip: mostly there is no work. A refill (queue.Q5) is part of the list's
//   transaction, and claims there.
// batches.G3. A list that fails unexpectedly is repeated alone, then write by write, so that it fails no other list.
// batches.G4. Lists that may run optimistically do not share a transaction with lists that need queries.

import type { EpochMs } from "../../base/index.ts";
import type { Outcome, Write } from "../../kernel/index.ts";
import { idleOutcome } from "../rules/apply.ts";
import { isPoll, isRefill, isWorthRetrying, writeOneByOne } from "../rules/write-one-by-one.ts";
import { applyWrites } from "./apply-writes.ts";
import type { History } from "./history.ts";
import { BatchScope } from "./batch-scope.ts";
import type { Reader } from "./reader.ts";
import type { TransactionRunner, TransactionWork } from "./runner.ts";
import type { WorkingSet } from "./working-set.ts";

interface List {
  readonly writes: readonly Write[];
  readonly scope: BatchScope;
  /** remote.Y5. The epoch in which the list was made. */
  readonly epoch: number;
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes in one transaction; a single list may have more. */
const MAX_WRITES = 2_000;

export class Batches {
  readonly #runner: TransactionRunner;
  readonly #maxConcurrent: number;
  readonly #reader: Reader;
  readonly #history: History;
  readonly #now: () => EpochMs;
  /** Polls that found work the last time: they skip the read without locks. */
  readonly #productive = new Set<Write["write"]>();
  #pending: List[] = [];
  #running = 0;
  #idle: (() => void)[] = [];

  /** `maxConcurrent`: transactions in flight at once. */
  constructor(runner: TransactionRunner, reader: Reader, history: History, now: () => EpochMs, maxConcurrent: number) {
    this.#runner = runner;
    this.#reader = reader;
    this.#history = history;
    this.#now = now;
    this.#maxConcurrent = maxConcurrent;
  }

  async write(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (!writes.some(isPoll)) return this.#add(writes);
    // batches.G2
    const others = writes.filter((write) => !isPoll(write));
    const done = [...(await this.#add(others))];
    const polled = [...(await this.#poll(writes.filter(isPoll)))];
    return writes.map((write) => (isPoll(write) ? polled.shift()! : done.shift()!));
  }

  /** batches.G2 */
  async #poll(polls: readonly Write[]): Promise<readonly Outcome[]> {
    const outcomes = new Map(await this.#findIdle(polls.filter(({ write }) => !this.#productive.has(write))));
    // Runs that are admitted now are claimed in the same poll.
    if (polls.some((poll) => poll.write === "admit" && !outcomes.has(poll)))
      for (const poll of polls) if (poll.write === "claim-turns") outcomes.delete(poll);
    const left = polls.filter((poll) => !outcomes.has(poll));
    while (left.length > 0) {
      // Claims never wait for a lock, so they share one transaction.
      const count = left.findIndex(({ write }) => !CLAIMS.has(write));
      const some = left.splice(0, count < 0 ? left.length : Math.max(1, count));
      const done = await this.#runner.run(workOn(some));
      for (const [index, poll] of some.entries()) {
        outcomes.set(poll, done[index]!);
        if (hasFoundWork(done[index]!)) this.#productive.add(poll.write);
        else this.#productive.delete(poll.write);
      }
    }
    return polls.map((poll) => outcomes.get(poll)!);
  }

  /** The polls that find no work, with their outcomes. */
  async #findIdle(polls: readonly Write[]): Promise<readonly (readonly [Write, Outcome])[]> {
    if (polls.length === 0) return [];
    const now = this.#now();
    const outcomes = await this.#reader.withRows("Polling", (rows) =>
      polls.map((poll) => idleOutcome(rows, now, poll)),
    );
    return polls.flatMap((poll, index) => {
      const outcome = outcomes[index];
      return outcome === undefined ? [] : [[poll, outcome] as const];
    });
  }

  /** Resolves when no transaction is in flight. */
  async drained(): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #add(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (writes.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const { epoch } = this.#history;
      this.#pending.push({ writes, scope: new BatchScope(writes), epoch, resolve, reject });
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#running < this.#maxConcurrent && this.#pending.length > 0) {
      this.#running += 1;
      void this.#commit(this.#next()).finally(() => {
        this.#running -= 1;
        this.#pump();
        if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
      });
    }
  }

  /** batches.G4. The oldest list, and the lists that may share its transaction. */
  #next(): readonly List[] {
    const [oldest] = this.#pending;
    const lists: List[] = [];
    const left: List[] = [];
    let writes = 0;
    for (const list of this.#pending) {
      const fits = lists.length === 0 || writes + list.writes.length <= MAX_WRITES;
      if (!fits || list.scope.isOptimistic !== oldest!.scope.isOptimistic) {
        left.push(list);
        continue;
      }
      lists.push(list);
      writes += list.writes.length;
    }
    this.#pending = left;
    return lists;
  }

  async #commit(lists: readonly List[]): Promise<void> {
    try {
      const [first] = lists;
      const writes = lists.length === 1 ? first!.writes : lists.flatMap((list) => list.writes);
      const scope = lists.length === 1 ? first!.scope : undefined;
      // Mostly all lists are from the current epoch.
      const { epoch } = this.#history;
      const epochs = lists.every((list) => list.epoch === epoch)
        ? undefined
        : lists.flatMap((list) => list.writes.map(() => list.epoch));
      const outcomes = await this.#runner.run(
        workOn(writes, scope, (index) => (epochs?.[index] ?? epoch) !== this.#history.epoch),
      );
      let from = 0;
      for (const { writes, resolve } of lists) resolve(outcomes.slice(from, (from += writes.length)));
    } catch (error) {
      for (const list of lists) await this.#repeat(list, error, lists.length > 1);
    }
  }

  /** batches.G3 */
  async #repeat(list: List, error: unknown, wasShared: boolean): Promise<void> {
    const { writes, resolve, reject } = list;
    if (!isWorthRetrying(error) || (!wasShared && writes.length === 1)) return reject(error);
    try {
      resolve(wasShared ? await this.#runAlone(list, writes) : await this.#singly(list));
    } catch (again) {
      if (!wasShared || writes.length === 1 || !isWorthRetrying(again)) return reject(again);
      await this.#singly(list).then(resolve, reject);
    }
  }

  #singly(list: List): Promise<readonly Outcome[]> {
    return writeOneByOne(list.writes, async (write) => (await this.#runAlone(list, [write]))[0]!);
  }

  #runAlone({ epoch }: List, writes: readonly Write[]): Promise<readonly Outcome[]> {
    return this.#runner.run(workOn(writes, undefined, () => epoch !== this.#history.epoch));
  }
}

const CLAIMS: ReadonlySet<Write["write"]> = new Set<Write["write"]>(["claim-turns", "claim-items", "claim-messages"]);

/** `isLost`: whether history went back since the write at this index was made. */
export function workOn(
  writes: readonly Write[],
  scope = new BatchScope(writes),
  isLost?: (index: number) => boolean,
): TransactionWork<readonly Outcome[]> {
  const mode = writes.some((write) => CLAIMS.has(write.write) && !isRefill(write)) ? "claim" : "write";
  return {
    what: mode === "claim" ? "Claiming" : "Committing",
    isOrdered: mode === "write",
    use: writes.some(isPoll) ? "claim" : "write",
    scope,
    assume: (ws) => assumeNew(ws, writes),
    apply: (ws, now, nextRun, isOptimistic, settings) => {
      const options = { mode, now, nextRun, mayGuess: !isOptimistic, settings, ...(isLost && { isLost }) } as const;
      const tried = applyWrites(ws, options, writes);
      if ("queries" in tried) return tried;
      return { result: tried.result.outcomes, nextRun: tried.result.nextRun };
    },
  };
}

/** Whether a poll found work. */
function hasFoundWork(outcome: Outcome): boolean {
  if (Array.isArray(outcome)) return outcome.length > 0;
  return Object.values(outcome).some((found) => Array.isArray(found) && found.length > 0);
}

function assumeNew(ws: WorkingSet, writes: readonly Write[]): void {
  const assume = (id: string): void => ws.assumeAbsent("runs", ["id", "generation"], [id, 0]);
  for (const write of writes) {
    if (write.write === "start") assume(write.run.id);
    if (write.write === "turn") for (const { run } of write.children) assume(run.id);
  }
}
