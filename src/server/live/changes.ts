// ChangeHub: the change feed of one server. The store has no number of its last change, so the hub reads what may have changed, compares
// it with what it read before, and numbers the differences itself.
//
// changes.H1. One read serves every reader: an event is made and encoded once.
// changes.H2. Without a reader nothing is read. The hub stops half a minute after its last reader has left; until then a reader that was
//   cut off finds its place again. The next start begins a new epoch (change-ring.R1).
// changes.H3. The hub wakes up on commits of this process, on the store's notices and polls for other processes, and every two seconds for
//   what only time changes: whether a worker is alive.
// changes.H4. Each list is read at most once a second, after a burst of five; a run as run-changes.C1 says. What could not be read is
//   still due: an error of the store delays events and loses none.

import type { Clock, Random, Timers } from "../../base/index.ts";
import type { LiveReads } from "../../engine/index.ts";
import type { Logger, RunNumber, Store } from "../../kernel/index.ts";
import type { ChangeEvent } from "./change-event.ts";
import { ChangeRing, type NumberedChange } from "./change-ring.ts";
import { ListChanges } from "./list-changes.ts";
import { RateBudget } from "./rate-budget.ts";
import { RunChanges } from "./run-changes.ts";

export interface ChangeHubHost {
  readonly live: LiveReads;
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
  readonly closing: AbortSignal;
}

export type ChangeReader = (change: NumberedChange) => void;

/** What a reader finds when it joins. */
export interface Joined {
  /** The id from which on the reader gets every event. */
  readonly lastId: string;
  /** The events behind the id that the reader named; undefined: they are lost, or it named none. */
  readonly missed: readonly NumberedChange[] | undefined;
  readonly leave: () => void;
}

const LINGER_MS = 30_000;
const TICK_MS = 2_000;
const GATHER_MS = 10;

type ListName = "promises" | "queues" | "runs" | "workers";
const LISTS: readonly ListName[] = ["runs", "promises", "queues", "workers"];

/** One period in which the hub runs. */
interface Period {
  readonly ring: ChangeRing;
  readonly runs: RunChanges;
  readonly lists: ListChanges;
  readonly ready: Promise<void>;
  readonly stop: () => void;
}

export class ChangeHub {
  readonly #host: ChangeHubHost;
  readonly #readers = new Set<ChangeReader>();
  readonly #budgets = new Map<ListName, RateBudget>();
  readonly #due = new Set<ListName>();
  /** The runs that other processes named; "any": one did not say which. */
  #others: Set<RunNumber> | "any" = new Set();
  #period: Period | undefined;
  #cancelRead: (() => void) | undefined;
  #reading = false;
  #cancelLinger: () => void = () => undefined;

  constructor(host: ChangeHubHost) {
    this.#host = host;
    host.closing.addEventListener("abort", () => this.#stop(), { once: true });
  }

  /** `runs`: the reader watches these, so changes by other processes are read also if they are old. */
  async join(reader: ChangeReader, after: string | undefined, runs: readonly string[] = []): Promise<Joined> {
    this.#cancelLinger();
    const period = (this.#period ??= this.#start());
    const unwatch = period.runs.watch(runs);
    await period.ready;
    this.#readers.add(reader);
    // Another reader may have left meanwhile.
    this.#cancelLinger();
    return {
      lastId: period.ring.lastId,
      missed: after === undefined ? undefined : period.ring.after(after),
      leave: () => {
        unwatch();
        this.#readers.delete(reader);
        if (this.#readers.size === 0) this.#linger();
      },
    };
  }

  get readerCount(): number {
    return this.#readers.size;
  }

  #start(): Period {
    const { store, clock, timers, random, live } = this.#host;
    let isReady = false;
    const emit = (change: ChangeEvent): void => {
      if (!isReady) return;
      const numbered = ring.add(change);
      for (const read of this.#readers) read(numbered);
    };
    const ring = new ChangeRing(random.token().slice(0, 12));
    const report = (error: unknown): void => this.#report(error);
    const runs = new RunChanges({ store, clock, timers, emit, report });
    const lists = new ListChanges({ store, emit, findRuns: (numbers) => runs.find(numbers) });
    const unlisten = live.listen({
      onRun: (run, isOver) => {
        runs.changed(run, isOver);
        this.#readSoon("promises", "queues");
      },
      onWritten: () => this.#readSoon("promises", "queues"),
      onOthers: (changed) => {
        this.#noteOthers(changed);
        this.#readSoon(...LISTS);
      },
    });
    let cancelTick = (): void => undefined;
    const tick = (): void => {
      cancelTick = timers.set(
        TICK_MS,
        () => {
          this.#readSoon("workers");
          tick();
        },
        { ref: false },
      );
    };
    tick();
    const ready = (async () => {
      await Promise.all([runs.start(), lists.readQueues(), lists.readWorkers(), lists.readPromises()]);
      isReady = true;
    })();
    // A reader that waits for it gets the error.
    ready.catch(() => this.#stop());
    const stop = (): void => {
      cancelTick();
      unlisten();
      runs.stop();
    };
    return { ring, runs, lists, ready, stop };
  }

  #linger(): void {
    this.#cancelLinger();
    this.#cancelLinger = this.#host.timers.set(LINGER_MS, () => this.#stop(), { ref: false });
  }

  #stop(): void {
    this.#cancelLinger();
    this.#cancelRead?.();
    this.#cancelRead = undefined;
    this.#period?.stop();
    this.#period = undefined;
  }

  // ── lists ──

  #readSoon(...lists: readonly ListName[]): void {
    for (const list of lists) this.#due.add(list);
    this.#schedule(GATHER_MS);
  }

  #schedule(ms: number): void {
    if (this.#period === undefined || this.#reading || this.#cancelRead !== undefined) return;
    this.#cancelRead = this.#host.timers.set(
      ms,
      () => {
        this.#cancelRead = undefined;
        void this.#readDue();
      },
      { ref: false },
    );
  }

  /** changes.H4 */
  async #readDue(): Promise<void> {
    const period = this.#period;
    if (period === undefined) return;
    const now = this.#host.clock.monotonic();
    let nextIn = Number.POSITIVE_INFINITY;
    const allowed = [...this.#due].filter((list) => {
      let budget = this.#budgets.get(list);
      if (budget === undefined) this.#budgets.set(list, (budget = new RateBudget(now)));
      const waitMs = budget.take(now);
      if (waitMs > 0) nextIn = Math.min(nextIn, waitMs);
      return waitMs === 0;
    });
    this.#reading = true;
    try {
      await period.ready;
      for (const list of allowed) {
        this.#due.delete(list);
        try {
          await this.#readList(period, list);
        } catch (error) {
          this.#due.add(list);
          throw error;
        }
      }
    } catch (error) {
      this.#report(error);
    } finally {
      this.#reading = false;
      if (this.#due.size > 0) this.#schedule(Number.isFinite(nextIn) ? nextIn : GATHER_MS);
    }
  }

  async #readList({ runs, lists }: Period, list: ListName): Promise<void> {
    switch (list) {
      case "runs": {
        const others = this.#others;
        this.#others = new Set();
        try {
          return await runs.poll(others === "any" ? undefined : others);
        } catch (error) {
          this.#noteOthers(others === "any" ? undefined : others);
          throw error;
        }
      }
      case "promises":
        return lists.readPromises();
      case "queues":
        return lists.readQueues();
      case "workers":
        return lists.readWorkers();
    }
  }

  #noteOthers(changed: Iterable<RunNumber> | undefined): void {
    if (changed === undefined) this.#others = "any";
    else if (this.#others !== "any") for (const run of changed) this.#others.add(run);
  }

  #report(error: unknown): void {
    if (!this.#host.closing.aborted && this.#period !== undefined)
      this.#host.logger.error(`Change feed: ${String(error)}`);
  }
}
