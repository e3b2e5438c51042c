// Runner: one transaction, from what it has to know to a commit whose outcome is known.
//
// R1. Loaded, applied, committed: what the rules miss is loaded and they are applied anew, until nothing is missing.
// R2. Careful: every run is locked before anything of it is read (L1). Quick: nothing is asked at all, everything is
//     remembered, and the commit checks it. A quick one that misses anything, or finds that something has moved, is done the
//     careful way.
// R3. Whatever is thrown, the transaction is rolled back before anybody decides anything (A9). Nothing changed: nothing is
//     committed.

import { invariant } from "../../base/index.ts";
import type { Seal } from "../seal.ts";
import { LinkError, type Change } from "./backend.ts";
import { sealed } from "./border.ts";
import type { Links, WriteLink } from "./links.ts";
import { Loading } from "./loading.ts";
import type { Memory } from "./memory.ts";
import type { Needs } from "./needs.ts";
import type { Block, Numbers } from "./numbers.ts";
import type { Outcomes } from "./outcomes.ts";
import { busyError, MAX_LOST, MAX_TRIES, pause, pauseMs, unreachable, type Waiting } from "./patience.ts";
import type { Question } from "./query.ts";
import { WorkingSet } from "./working-set.ts";

/** What the rules made of the rows there are: an answer, or what they have to know first. */
export type Applied<T> =
  | { readonly result: T; readonly nextRun?: number | undefined }
  | { readonly questions: readonly Question[] };

export interface Work<T> {
  /** For people: what failed. */
  readonly what: string;
  /** Whether it keeps to the order of locks (L1). Who skips what others have need not. */
  readonly isOrdered: boolean;
  /** Whose links it uses; `claim` unless it says otherwise. */
  readonly lane?: "write" | "claim" | "beat";
  /** Y6. It does not wait until the history of the store is known. */
  readonly isUrgent?: boolean;
  /** Undefined when it is not about writes. */
  readonly needs?: Needs | undefined;
  /** Called many times; each time nothing of what it changed before is there. */
  apply(ws: WorkingSet, now: number, nextRun: number, isQuick: boolean): Applied<T>;
  /** What is taken for granted until a commit says otherwise. */
  assume?(ws: WorkingSet): void;
}

export interface RunnerParts extends Waiting {
  readonly links: Links;
  readonly outcomes: Outcomes;
  readonly memory: Memory;
  readonly runNumbers: Numbers;
  readonly isQuick: boolean;
  readonly patienceMs: number;
  readonly seal: () => Seal | undefined;
  readonly now: () => number;
  /** After every commit. */
  readonly committed: (changes: readonly Change[]) => void;
}

/** Rounds of questions in one transaction; more would be a mistake of ours. */
const MAX_ROUNDS = 1_000;

/** Working sets that are kept, with their words. */
const MAX_SETS = 8;

/** What an attempt learned for the next one. */
interface Plan {
  readonly questions: readonly Question[];
  /** Runs that turned out to be needed, to be locked by number. */
  readonly runs: readonly number[];
  /** Nothing is taken for granted any more. */
  readonly isWary: boolean;
}

const FIRST: Plan = { questions: [], runs: [], isWary: false };
const WARY: Plan = { ...FIRST, isWary: true };

type Why = "order" | "moved" | "again" | "lost";
type Attempt<T> = { readonly done: T } | { readonly again: Plan; readonly why: Why };

export class Runner {
  readonly #parts: RunnerParts;
  readonly #sets: WorkingSet[] = [];

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  /** On any write link; on another one when it is lost. */
  async run<T>(work: Work<T>): Promise<T> {
    const { links, runNumbers } = this.#parts;
    const block = await runNumbers.take(work.needs?.starts ?? 0);
    try {
      return await this.#persist(work.what, (plan) =>
        links.use(work.lane ?? "claim", (on) => this.#attempt(on, work, block, plan), work.isUrgent),
      );
    } finally {
      runNumbers.giveBack(block);
    }
  }

  /** Work that begins with something else in the same transaction, on a link of its own; both may be done again. */
  runWith<T>(what: string, begin: (on: WriteLink) => Promise<Work<T>>): Promise<T> {
    const { links, runNumbers } = this.#parts;
    return this.#persist(what, () =>
      links.use("user", async (on) => {
        let work: Work<T>;
        try {
          work = await begin(on);
        } catch (error) {
          if (on.link.isUsable) await on.link.rollback();
          throw error;
        }
        const block = await runNumbers.take(work.needs?.starts ?? 0);
        try {
          // Its locks come after whatever the user has locked, in no order that we could keep.
          return await this.#carefully(on, { ...work, isOrdered: false }, block, WARY);
        } finally {
          runNumbers.giveBack(block);
        }
      }),
    );
  }

  /** R2, R3. Begins anew until it is done, or has been tried often or long enough. */
  async #persist<T>(what: string, attempt: (plan: Plan | undefined) => Promise<Attempt<T>>): Promise<T> {
    const { clock, patienceMs } = this.#parts;
    const start = clock.monotonic();
    let plan: Plan | undefined;
    for (let tries = 0, lost = 0, anew = 0; ;) {
      let cause: unknown;
      let why: Why;
      try {
        const result = await attempt(plan);
        if ("done" in result) return result.done;
        plan = result.again;
        why = result.why;
      } catch (error) {
        if (!(error instanceof LinkError)) throw error;
        cause = error;
        why = error.reason;
      }
      if (why === "order") {
        invariant((anew += 1) < MAX_ROUNDS, "locks are never in order", { what });
        continue;
      }
      if (why === "lost") lost += 1;
      else tries += 1;
      if (tries >= MAX_TRIES) throw busyError(what, cause);
      if (lost > 0 && (clock.monotonic() - start >= patienceMs || lost >= MAX_LOST)) throw unreachable(what, cause);
      // The first time somebody was quicker, looking is enough.
      if (why !== "moved" || tries > 1) await pause(this.#parts, pauseMs(this.#parts, tries + lost));
    }
  }

  async #attempt<T>(on: WriteLink, work: Work<T>, block: Block, plan: Plan | undefined): Promise<Attempt<T>> {
    if (plan === undefined && work.needs?.isQuick === true && this.#parts.isQuick) {
      const quick = await this.#quickly(on, work, work.needs, block);
      if (quick !== undefined) return quick;
    }
    return this.#carefully(on, work, block, plan ?? FIRST);
  }

  /** R2. Undefined when it has to be done the other way. */
  async #quickly<T>(on: WriteLink, work: Work<T>, needs: Needs, block: Block): Promise<Attempt<T> | undefined> {
    const { memory, now } = this.#parts;
    if (!memory.knows(needs.runs)) return undefined;
    const ws = this.#sets.pop() ?? new WorkingSet();
    memory.assume(ws, needs.runs);
    work.assume?.(ws);
    const applied = work.apply(ws, now(), nextOf(block), true);
    if ("questions" in applied) {
      this.#keep(ws);
      return undefined;
    }
    const attempt = await this.#commit(on, work, ws, block, applied, FIRST);
    this.#keep(ws);
    if (!("done" in attempt)) memory.forget(needs.runs);
    return attempt;
  }

  /** For another transaction; one that something was thrown in is not kept. */
  #keep(ws: WorkingSet): void {
    ws.clear();
    if (this.#sets.length < MAX_SETS) this.#sets.push(ws);
  }

  async #carefully<T>(on: WriteLink, work: Work<T>, block: Block, plan: Plan): Promise<Attempt<T>> {
    const { seal, now, memory } = this.#parts;
    const ws = this.#sets.pop() ?? new WorkingSet();
    const loading = new Loading(on, ws, work.isOrdered, seal(), memory, plan.runs);
    if (!plan.isWary) work.assume?.(ws);
    const beginAnew = async (): Promise<Attempt<T>> => {
      await on.link.rollback();
      this.#keep(ws);
      return { again: { ...plan, questions: loading.asked, runs: [...plan.runs, ...loading.found] }, why: "order" };
    };
    try {
      if (plan.questions.length > 0 && !(await loading.load(plan.questions))) return await beginAnew();
      let at: number | undefined;
      for (let round = 0; ; round += 1) {
        invariant(round < MAX_ROUNDS, "a transaction asks for ever", { what: work.what });
        // Once rows have been asked for by it, it stands still: the same questions come again.
        const applied = work.apply(ws, (at ??= now()), nextOf(block), false);
        if ("result" in applied) {
          const attempt = await this.#commit(on, work, ws, block, applied, plan);
          this.#keep(ws);
          return attempt;
        }
        if (!(await loading.load(applied.questions))) return await beginAnew();
      }
    } catch (error) {
      if (!(error instanceof LinkError && error.reason === "lost") && on.link.isUsable) await on.link.rollback();
      throw error;
    }
  }

  async #commit<T>(
    on: WriteLink,
    work: Work<T>,
    ws: WorkingSet,
    block: Block,
    { result, nextRun }: Extract<Applied<T>, { result: T }>,
    plan: Plan,
  ): Promise<Attempt<T>> {
    const { outcomes, memory, committed, seal, now } = this.#parts;
    const hasStarted = nextRun !== undefined && nextRun !== nextOf(block);
    invariant(!hasStarted || nextRun <= block.end, "more runs were started than numbers taken");
    const changes = ws.changes();
    // R3
    if (changes.length === 0) {
      await on.link.rollback();
      return { done: result };
    }
    const outcome = await outcomes.commit(work.what, on, now(), sealed(seal(), changes));
    if (outcome === "committed") {
      if (hasStarted) block.next = nextRun;
      memory.note(ws, changes);
      committed(changes);
      return { done: result };
    }
    if (on.link.isUsable) await on.link.rollback();
    // What was read before is of another history.
    if (outcome === "rolled-back") return { again: WARY, why: "moved" };
    return { again: { ...plan, isWary: plan.isWary || outcome === "moved" }, why: outcome };
  }
}

/** Without numbers of our own, no number is ours. */
function nextOf({ next, end }: Block): number {
  return end > next ? next : Number.MAX_SAFE_INTEGER;
}
