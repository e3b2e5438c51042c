// Batches: group commit. Lists that come while all write links are busy share the next transaction.
//
// G1. A list is answered when its transaction is durable; its writes stay in order and together.
// G2. Claims and other polls are transactions of their own, after the list's writes: what they lock is not what writes lock.
// G3. A list that breaks something unexpected is done again alone, and then write by write: it hurts no other.
// G4. Lists that may need no questions are not held up by lists that do.

import type { Outcome, Write } from "../../kernel/index.ts";
import { isPoll, isWorthRepeating, writeSingly } from "../rules/singly.ts";
import { tryApply } from "./attempt.ts";
import { Needs } from "./needs.ts";
import type { Runner, Work } from "./runner.ts";
import type { WorkingSet } from "./working-set.ts";

interface List {
  readonly writes: readonly Write[];
  readonly isQuick: boolean;
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes in one transaction, but for a list that has more by itself. */
const MAX_WRITES = 2_000;

export class Batches {
  readonly #runner: Runner;
  readonly #links: number;
  #waiting: List[] = [];
  #running = 0;
  #idle: (() => void)[] = [];

  /** `links`: transactions at once. */
  constructor(runner: Runner, links: number) {
    this.#runner = runner;
    this.#links = links;
  }

  async write(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (!writes.some(isPoll)) return this.#add(writes);
    // G2
    const others = writes.filter((write) => !isPoll(write));
    const done = [...(await this.#add(others))];
    const outcomes: Outcome[] = [];
    for (const write of writes) outcomes.push(isPoll(write) ? await this.#one(write) : done.shift()!);
    return outcomes;
  }

  /** Resolves when nothing is under way. */
  async drained(): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #add(writes: readonly Write[]): Promise<readonly Outcome[]> {
    if (writes.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ writes, isQuick: new Needs(writes).isQuick, resolve, reject });
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
      if (!fits || list.isQuick !== oldest!.isQuick) {
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
      const outcomes = await this.#runner.run(workOn(lists.flatMap(({ writes }) => writes)));
      let from = 0;
      for (const { writes, resolve } of lists) resolve(outcomes.slice(from, (from += writes.length)));
    } catch (error) {
      for (const list of lists) await this.#repeat(list, error, lists.length > 1);
    }
  }

  /** G3 */
  async #repeat({ writes, resolve, reject }: List, error: unknown, wasInCompany: boolean): Promise<void> {
    if (!isWorthRepeating(error) || (!wasInCompany && writes.length === 1)) return reject(error);
    try {
      resolve(wasInCompany ? await this.#runner.run(workOn(writes)) : await this.#singly(writes));
    } catch (again) {
      if (!wasInCompany || writes.length === 1 || !isWorthRepeating(again)) return reject(again);
      await this.#singly(writes).then(resolve, reject);
    }
  }

  #singly(writes: readonly Write[]): Promise<readonly Outcome[]> {
    return writeSingly(writes, (write) => this.#one(write));
  }

  async #one(write: Write): Promise<Outcome> {
    const [outcome] = await this.#runner.run(workOn([write]));
    return outcome!;
  }
}

const CLAIMS: ReadonlySet<Write["write"]> = new Set<Write["write"]>(["claim-turns", "claim-items", "claim-messages"]);

export function workOn(writes: readonly Write[]): Work<readonly Outcome[]> {
  const mode = writes.some(({ write }) => CLAIMS.has(write)) ? "claim" : "write";
  return {
    what: mode === "claim" ? "Claiming" : "Committing",
    isOrdered: mode === "write",
    lane: writes.some(isPoll) ? "claim" : "write",
    needs: new Needs(writes),
    assume: (ws) => assumeNew(ws, writes),
    apply: (ws, now, nextRun) => {
      const tried = tryApply(ws, { mode, now, nextRun }, writes);
      if ("questions" in tried) return tried;
      return { result: tried.result.outcomes, nextRun: tried.result.nextRun };
    },
  };
}

function assumeNew(ws: WorkingSet, writes: readonly Write[]): void {
  const assume = (id: string): void => ws.assumeAbsent("runs", ["id", "generation"], [id, 0]);
  for (const write of writes) {
    if (write.write === "start") assume(write.run.id);
    if (write.write === "turn") for (const { run } of write.children) assume(run.id);
  }
}
