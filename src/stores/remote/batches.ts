// Batches: group commit. Lists that come while all write links are busy share the next transaction.
//
// G1. A list is answered when its transaction is durable; its writes stay in order and together.
// G2. Claims and other polls are transactions of their own, after the list's writes: what they lock is not what writes lock.
//     They look first, all in one round trip and without a lock: mostly there is nothing.
// G3. A list that breaks something unexpected is done again alone, and then write by write: it hurts no other.
// G4. Lists that may need no questions are not held up by lists that do.

import type { EpochMs } from "../../base/index.ts";
import type { Outcome, Write } from "../../kernel/index.ts";
import { idleOutcome } from "../rules/apply.ts";
import { isPoll, isWorthRepeating, writeSingly } from "../rules/singly.ts";
import { tryApply } from "./attempt.ts";
import { wantFootprint } from "./footprint.ts";
import type { History } from "./history.ts";
import { Needs } from "./needs.ts";
import type { Reader } from "./reader.ts";
import type { Runner, Work } from "./runner.ts";
import type { WorkingSet } from "./working-set.ts";

interface List {
  readonly writes: readonly Write[];
  readonly needs: Needs;
  /** Y5. Of the history it was made in. */
  readonly epoch: number;
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes in one transaction, but for a list that has more by itself. */
const MAX_WRITES = 2_000;

export class Batches {
  readonly #runner: Runner;
  readonly #links: number;
  readonly #reader: Reader;
  readonly #history: History;
  readonly #now: () => EpochMs;
  /** Polls that found something the last time: they need not look first. */
  readonly #finding = new Set<Write["write"]>();
  #waiting: List[] = [];
  #running = 0;
  #idle: (() => void)[] = [];

  /** `links`: transactions at once. */
  constructor(runner: Runner, reader: Reader, history: History, now: () => EpochMs, links: number) {
    this.#runner = runner;
    this.#reader = reader;
    this.#history = history;
    this.#now = now;
    this.#links = links;
  }

  async write(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (!writes.some(isPoll)) return this.#add(writes);
    // G2
    const others = writes.filter((write) => !isPoll(write));
    const done = [...(await this.#add(others))];
    const polled = [...(await this.#poll(writes.filter(isPoll)))];
    return writes.map((write) => (isPoll(write) ? polled.shift()! : done.shift()!));
  }

  /** G2 */
  async #poll(polls: readonly Write[]): Promise<readonly Outcome[]> {
    const outcomes = new Map(await this.#idly(polls.filter(({ write }) => !this.#finding.has(write))));
    // Runs that begin are claimed at once.
    if (polls.some((poll) => poll.write === "admit" && !outcomes.has(poll)))
      for (const poll of polls) if (poll.write === "claim-turns") outcomes.delete(poll);
    const left = polls.filter((poll) => !outcomes.has(poll));
    while (left.length > 0) {
      // Claims never wait for a lock: one transaction does for all of them.
      const count = left.findIndex(({ write }) => !CLAIMS.has(write));
      const some = left.splice(0, count < 0 ? left.length : Math.max(1, count));
      const done = await this.#runner.run(workOn(some));
      for (const [index, poll] of some.entries()) {
        outcomes.set(poll, done[index]!);
        if (hasFound(done[index]!)) this.#finding.add(poll.write);
        else this.#finding.delete(poll.write);
      }
    }
    return polls.map((poll) => outcomes.get(poll)!);
  }

  /** Those that find nothing. */
  async #idly(polls: readonly Write[]): Promise<readonly (readonly [Write, Outcome])[]> {
    if (polls.length === 0) return [];
    const now = this.#now();
    const outcomes = await this.#reader.speak(
      "Polling",
      (sql, ws) => {
        for (const poll of polls) wantFootprint(ws, "read", now, poll);
        return polls.map((poll) => idleOutcome(sql, now, poll));
      },
      polls,
    );
    return polls.flatMap((poll, index) => {
      const outcome = outcomes[index];
      return outcome === undefined ? [] : [[poll, outcome] as const];
    });
  }

  /** Resolves when nothing is under way. */
  async drained(): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #add(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (writes.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const { epoch } = this.#history;
      this.#waiting.push({ writes, needs: new Needs(writes), epoch, resolve, reject });
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#running < this.#links && this.#waiting.length > 0) {
      this.#running += 1;
      void this.#commit(this.#next()).finally(() => {
        this.#running -= 1;
        this.#pump();
        if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
      });
    }
  }

  /** G4. The oldest, and those that are like it. */
  #next(): readonly List[] {
    const [oldest] = this.#waiting;
    const lists: List[] = [];
    const left: List[] = [];
    let writes = 0;
    for (const list of this.#waiting) {
      const fits = lists.length === 0 || writes + list.writes.length <= MAX_WRITES;
      if (!fits || list.needs.isQuick !== oldest!.needs.isQuick) {
        left.push(list);
        continue;
      }
      lists.push(list);
      writes += list.writes.length;
    }
    this.#waiting = left;
    return lists;
  }

  async #commit(lists: readonly List[]): Promise<void> {
    try {
      const [first] = lists;
      const writes = lists.length === 1 ? first!.writes : lists.flatMap((list) => list.writes);
      const needs = lists.length === 1 ? first!.needs : undefined;
      // Mostly all of one history.
      const { epoch } = this.#history;
      const epochs = lists.every((list) => list.epoch === epoch)
        ? undefined
        : lists.flatMap((list) => list.writes.map(() => list.epoch));
      const outcomes = await this.#runner.run(
        workOn(writes, needs, (index) => (epochs?.[index] ?? epoch) !== this.#history.epoch),
      );
      let from = 0;
      for (const { writes, resolve } of lists) resolve(outcomes.slice(from, (from += writes.length)));
    } catch (error) {
      for (const list of lists) await this.#repeat(list, error, lists.length > 1);
    }
  }

  /** G3 */
  async #repeat(list: List, error: unknown, wasInCompany: boolean): Promise<void> {
    const { writes, resolve, reject } = list;
    if (!isWorthRepeating(error) || (!wasInCompany && writes.length === 1)) return reject(error);
    try {
      resolve(wasInCompany ? await this.#runAlone(list, writes) : await this.#singly(list));
    } catch (again) {
      if (!wasInCompany || writes.length === 1 || !isWorthRepeating(again)) return reject(again);
      await this.#singly(list).then(resolve, reject);
    }
  }

  #singly(list: List): Promise<readonly Outcome[]> {
    return writeSingly(list.writes, async (write) => (await this.#runAlone(list, [write]))[0]!);
  }

  #runAlone({ epoch }: List, writes: readonly Write[]): Promise<readonly Outcome[]> {
    return this.#runner.run(workOn(writes, undefined, () => epoch !== this.#history.epoch));
  }
}

const CLAIMS: ReadonlySet<Write["write"]> = new Set<Write["write"]>(["claim-turns", "claim-items", "claim-messages"]);

/** `isLost`: whether history went back since a write was made. */
export function workOn(
  writes: readonly Write[],
  needs = new Needs(writes),
  isLost?: (index: number) => boolean,
): Work<readonly Outcome[]> {
  const mode = writes.some(({ write }) => CLAIMS.has(write)) ? "claim" : "write";
  return {
    what: mode === "claim" ? "Claiming" : "Committing",
    isOrdered: mode === "write",
    lane: writes.some(isPoll) ? "claim" : "write",
    needs,
    assume: (ws) => assumeNew(ws, writes),
    apply: (ws, now, nextRun, isQuick) => {
      const tried = tryApply(ws, { mode, now, nextRun, foresees: !isQuick, ...(isLost && { isLost }) }, writes);
      if ("questions" in tried) return tried;
      return { result: tried.result.outcomes, nextRun: tried.result.nextRun };
    },
  };
}

/** Whether a poll is worth repeating at once. */
function hasFound(outcome: Outcome): boolean {
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
