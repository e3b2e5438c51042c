// RunChanges: which runs changed since they were last read.
//
// run-changes.C1. A run that this process changed is read at once, a few times in a row, and then once a second; the commit that ends or
//   stops it is always read. Runs that are due together are one query.
// run-changes.C2. After a change by another process, the newest runs, the watched ones and the live ones that this feed has seen are
//   read again. That is a bounded number: a change of an older live run that is not watched may be missed if more than `MAX_KNOWN` are
//   live. If there are more new runs than the pages that are read, the feed says so with a reset.

import type { Clock, Timers } from "../../base/index.ts";
import type { RunSummary } from "../../contract/index.ts";
import { hasEnded, type RunNumber, type RunRecord, type RunStatus, type Store } from "../../kernel/index.ts";
import type { ChangeEvent } from "./change-event.ts";
import { RateBudget } from "./rate-budget.ts";

export interface RunChangesHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly emit: (change: ChangeEvent) => void;
  readonly report: (error: unknown) => void;
}

const PAGE = 100;
const MAX_PAGES = 5;
const MAX_KNOWN = 2_000;
const MAX_LIVE = 500;
/** Changes of one moment are read together. */
const GATHER_MS = 5;

interface KnownRun {
  readonly record: RunRecord;
  readonly mark: string;
}

export class RunChanges {
  readonly #host: RunChangesHost;
  readonly #known = new Map<RunNumber, KnownRun>();
  readonly #dirty = new Set<RunNumber>();
  /** Runs that may be read now, whatever their budget says. */
  readonly #urgent = new Set<RunNumber>();
  readonly #budgets = new Map<RunNumber, RateBudget>();
  /** Watched ids, with how many readers watch them. */
  readonly #watched = new Map<string, number>();
  #cancelFlush: (() => void) | undefined;
  #flushing = false;
  #newest: RunNumber = 0;
  #stopped = false;

  constructor(host: RunChangesHost) {
    this.#host = host;
  }

  /** Reads what is there, without an event. */
  async start(): Promise<void> {
    const { store } = this.#host;
    const page = await store.listRuns({ limit: PAGE });
    for (const record of page.toReversed()) this.#note(record);
    this.#newest = page[0]?.run ?? 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelFlush?.();
  }

  watch(ids: readonly string[]): () => void {
    for (const id of ids) this.#watched.set(id, (this.#watched.get(id) ?? 0) + 1);
    return () => {
      for (const id of ids) {
        const left = (this.#watched.get(id) ?? 1) - 1;
        if (left === 0) this.#watched.delete(id);
        else this.#watched.set(id, left);
      }
    };
  }

  /** The run of an open promise, as this feed knows it or reads it. */
  async find(runs: readonly RunNumber[]): Promise<ReadonlyMap<RunNumber, RunRecord>> {
    const missing = runs.filter((run) => !this.#known.has(run));
    const read = missing.length === 0 ? [] : await this.#host.store.readRuns(missing);
    const found = [...runs.map((run) => this.#known.get(run)?.record), ...read];
    return new Map(found.flatMap((record) => (record === undefined ? [] : [[record.run, record]])));
  }

  /** run-changes.C1 */
  changed(run: RunNumber, isOver: boolean): void {
    this.#dirty.add(run);
    if (isOver) this.#urgent.add(run);
    this.#flushIn(GATHER_MS);
  }

  #flushIn(ms: number): void {
    if (this.#stopped || this.#flushing || this.#cancelFlush !== undefined) return;
    this.#cancelFlush = this.#host.timers.set(
      ms,
      () => {
        this.#cancelFlush = undefined;
        this.#flushing = true;
        void this.#flush()
          .catch((error: unknown) => this.#host.report(error))
          .finally(() => {
            this.#flushing = false;
            if (this.#dirty.size > 0) this.#flushIn(Math.max(GATHER_MS, this.#nextIn));
          });
      },
      { ref: false },
    );
  }

  #nextIn = 0;

  async #flush(): Promise<void> {
    const now = this.#host.clock.monotonic();
    this.#nextIn = Number.POSITIVE_INFINITY;
    const due: RunNumber[] = [];
    for (const run of this.#dirty) {
      const waitMs = this.#urgent.has(run) ? 0 : this.#budgetOf(run, now).take(now);
      if (waitMs === 0) due.push(run);
      else this.#nextIn = Math.min(this.#nextIn, waitMs);
    }
    for (const run of due) {
      this.#dirty.delete(run);
      this.#urgent.delete(run);
    }
    if (!Number.isFinite(this.#nextIn)) this.#nextIn = 0;
    for (const [run, budget] of this.#budgets) if (budget.isFull(now)) this.#budgets.delete(run);
    try {
      await this.#read(due);
    } catch (error) {
      // changes.H4
      for (const run of due) this.#dirty.add(run);
      throw error;
    }
  }

  #budgetOf(run: RunNumber, now: number): RateBudget {
    let budget = this.#budgets.get(run);
    if (budget === undefined) this.#budgets.set(run, (budget = new RateBudget(now)));
    return budget;
  }

  async #read(runs: readonly RunNumber[]): Promise<void> {
    if (runs.length === 0) return;
    const records = await this.#host.store.readRuns(runs);
    for (const [index, record] of records.entries())
      if (record === undefined) this.#deleted(runs[index]!);
      else this.#compare(record);
  }

  /** run-changes.C2. `runs`: the other process named what it changed. */
  async poll(runs: ReadonlySet<RunNumber> | undefined): Promise<void> {
    const seen = await this.#readNewest();
    const live = [...this.#known.values()].filter(({ record }) => !hasEnded(record.status)).slice(-MAX_LIVE);
    const others = new Set(runs ?? live.map(({ record }) => record.run));
    for (const run of seen) others.delete(run);
    await this.#read([...others]);
    await this.#readWatched(seen);
  }

  /** Returns the numbers of the runs that were read. */
  async #readNewest(): Promise<ReadonlySet<RunNumber>> {
    const { store, emit } = this.#host;
    const seen = new Set<RunNumber>();
    const found: RunRecord[] = [];
    for (let pages = 0, before: RunNumber | undefined; pages < MAX_PAGES; pages += 1) {
      const page = await store.listRuns({ limit: PAGE, ...(before !== undefined && { before }) });
      found.push(...page);
      before = page.at(-1)?.run;
      if (page.length < PAGE || before === undefined || before <= this.#newest) break;
      if (pages === MAX_PAGES - 1)
        emit({ event: "reset", data: { reason: "More runs were started than the feed lists." } });
    }
    for (const record of found.toReversed()) {
      seen.add(record.run);
      this.#compare(record);
    }
    this.#newest = Math.max(this.#newest, found[0]?.run ?? 0);
    return seen;
  }

  async #readWatched(seen: ReadonlySet<RunNumber>): Promise<void> {
    const { store } = this.#host;
    const known = new Set(
      [...this.#known.values()].filter(({ record }) => seen.has(record.run)).map((one) => one.record.id),
    );
    const missing = [...this.#watched.keys()].filter((id) => !known.has(id));
    const records = await Promise.all(missing.map((id) => store.findRun(id)));
    for (const record of records) if (record !== undefined) this.#compare(record);
  }

  #compare(record: RunRecord): void {
    const before = this.#known.get(record.run);
    const { mark } = this.#note(record);
    if (before?.mark === mark) return;
    const statuses = new Set<RunStatus>([record.status, ...(before === undefined ? [] : [before.record.status])]);
    const { id, definition, tags } = record;
    this.#host.emit({
      event: "run",
      data: summaryOf(record),
      run: { id, definition, tags, statuses: [...statuses] },
    });
  }

  #deleted(run: RunNumber): void {
    const before = this.#known.get(run);
    this.#known.delete(run);
    if (before === undefined) return;
    const { id, definition, tags, status } = before.record;
    this.#host.emit({
      event: "run",
      data: { id, definition, deleted: true },
      run: { id, definition, tags, statuses: [status] },
    });
  }

  #note(record: RunRecord): KnownRun {
    const { run, status, head, chain, endedAt, tags } = record;
    const known = { record, mark: JSON.stringify([status, head, chain, endedAt, tags]) };
    // Written again, so that the order of the map is that of the last change or read.
    this.#known.delete(run);
    this.#known.set(run, known);
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!);
    return known;
  }
}

/** The row of a run as lists have it. */
export function summaryOf(record: RunRecord): RunSummary {
  const { id, definition, kind, version, generation, status, tags, head, chain } = record;
  const { createdAt, endedAt, errorCode } = record;
  return {
    id,
    definition,
    kind,
    version,
    generation,
    status,
    createdAt: new Date(createdAt).toISOString(),
    ...(endedAt !== undefined && { endedAt: new Date(endedAt).toISOString() }),
    tags,
    entries: head,
    digest: `sha256:${chain}`,
    ...(errorCode !== undefined && { errorCode }),
  };
}
