// Store metrics: what the store holds now, read when a scraper asks.
//
// store-metrics.R1. Every read is bounded: counts stop at `COUNTED`, so the page says "1000" for more. The results are reused for
//   `FRESH_MS`, however many scrapers ask.
// store-metrics.R2. Messages of the outbox are counted over the whole table, so they are read at most once in `OUTBOX_MS`.

import type { EpochMs } from "../../base/index.ts";
import { readWorkerActivity, readWorkerProfile, type RunStatus, type Store } from "../../kernel/index.ts";
import { Gauge, type AnyFamily } from "./metric-family.ts";

const COUNTED = 1_000;
const FRESH_MS = 5_000;
const OUTBOX_MS = 60_000;
const MAX_DEFINITIONS = 50;
const MAX_SCHEDULES = 500;

export class StoreMetrics {
  readonly #store: Store;
  readonly #runs = new Gauge({
    name: "reprise_runs",
    help: "Runs of definitions that have live runs. Counting stops at 1000.",
    labels: ["definition", "status"],
    limit: 1_000,
  });
  readonly #ready = queueGauge("ready", "Work of a queue that can be claimed now. Counting stops at 1000.");
  readonly #leased = queueGauge("leased", "Work of a queue that workers have claimed. Counting stops at 1000.");
  readonly #delayed = queueGauge("delayed", "Work of a queue that becomes ready later. Counting stops at 1000.");
  readonly #oldest = queueGauge("oldest_seconds", "How long the oldest ready work of a queue has been waiting.");
  readonly #outbox = new Gauge({
    name: "reprise_outbox_pending",
    help: "Undelivered messages.",
    labels: ["destination"],
  });
  readonly #promises = new Gauge({
    name: "reprise_promises_open",
    help: "Open promises among the first 1000.",
    labels: ["definition", "port"],
  });
  readonly #promiseAge = new Gauge({
    name: "reprise_promise_oldest_seconds",
    help: "How long the oldest open promise among the first 1000 has been waiting.",
    labels: ["definition", "port"],
  });
  readonly #lag = new Gauge({
    name: "reprise_schedule_lag_seconds",
    help: "How long the most overdue schedule has been due.",
  });
  readonly #slots = new Gauge({
    name: "reprise_worker_slots",
    help: "Slots for user functions of all live workers.",
    labels: ["state"],
  });
  readonly #workers = new Gauge({ name: "reprise_workers", help: "Workers with a valid lease." });
  readonly families: readonly AnyFamily[] = [
    this.#runs,
    this.#ready,
    this.#leased,
    this.#delayed,
    this.#oldest,
    this.#outbox,
    this.#promises,
    this.#promiseAge,
    this.#lag,
    this.#slots,
    this.#workers,
  ];
  #readAt = -Infinity;
  #outboxAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** store-metrics.R1 */
  refresh(now: EpochMs): Promise<void> {
    if (now - this.#readAt < FRESH_MS && now >= this.#readAt) return this.#reading ?? Promise.resolve();
    this.#reading ??= this.#read(now).finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(now: EpochMs): Promise<void> {
    await Promise.all([this.#readRuns(), this.#readQueues(), this.#readPromises(), this.#readWorkers()]);
    await this.#readSchedules();
    if (now - this.#outboxAt >= OUTBOX_MS) {
      this.#outboxAt = now;
      await this.#readOutbox();
    }
    this.#readAt = now;
  }

  async #readRuns(): Promise<void> {
    const names = [...new Set((await this.#store.countVersions()).map(({ name }) => name))];
    const counted = [];
    for (const name of names.slice(0, MAX_DEFINITIONS))
      counted.push([name, (await this.#store.countStatuses(COUNTED, name)).counts] as const);
    this.#runs.clear();
    for (const [name, counts] of counted)
      for (const [status, count] of Object.entries(counts) as [RunStatus, number][])
        if (count > 0) this.#runs.set([name, status], count);
  }

  async #readQueues(): Promise<void> {
    const queues = await this.#store.listQueues(COUNTED);
    for (const gauge of [this.#ready, this.#leased, this.#delayed, this.#oldest]) gauge.clear();
    const now = this.#store.now();
    for (const { name, ready, leased, delayed, oldestReadyAt } of queues) {
      this.#ready.set([name], ready);
      this.#leased.set([name], leased);
      this.#delayed.set([name], delayed);
      this.#oldest.set([name], oldestReadyAt === undefined ? 0 : secondsBetween(oldestReadyAt, now));
    }
  }

  async #readPromises(): Promise<void> {
    const { promises } = await this.#store.listPromises({ limit: COUNTED });
    this.#promises.clear();
    this.#promiseAge.clear();
    const now = this.#store.now();
    for (const { definition, name, at } of promises) {
      const age = secondsBetween(at, now);
      this.#promises.add([definition, name], 1);
      this.#promiseAge.raise([definition, name], age);
    }
  }

  async #readWorkers(): Promise<void> {
    const workers = await this.#store.listWorkers();
    const now = this.#store.now();
    let [live, all, used] = [0, 0, 0];
    for (const { until, profile, activity } of workers) {
      if (until < now) continue;
      live += 1;
      all += readWorkerProfile(profile)?.concurrency ?? 0;
      used += readWorkerActivity(activity)?.running ?? 0;
    }
    this.#workers.set([], live);
    this.#slots.set(["used"], used);
    this.#slots.set(["free"], Math.max(0, all - used));
  }

  async #readSchedules(): Promise<void> {
    const schedules = await this.#store.listSchedules("", MAX_SCHEDULES);
    const now = this.#store.now();
    const lags = schedules.flatMap(({ dueAt }) => (dueAt === undefined ? [] : [secondsBetween(dueAt, now)]));
    this.#lag.set([], Math.max(0, ...lags));
  }

  /** store-metrics.R2 */
  async #readOutbox(): Promise<void> {
    const { outbox } = await this.#store.info();
    this.#outbox.clear();
    for (const { destination, pending } of outbox.destinations) this.#outbox.set([destination], pending);
  }
}

function queueGauge(name: string, help: string): Gauge {
  return new Gauge({ name: `reprise_queue_${name}`, help, labels: ["queue"] });
}

function secondsBetween(from: EpochMs, to: EpochMs): number {
  return Math.max(0, to - from) / 1_000;
}
