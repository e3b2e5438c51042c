// Queue figures: what the page says about queues, workers and work that waits. Pure.

import type { PendingWork, QueueBody, QueueLimitsBody, WorkerBody } from "../../../../src/contract/queue.ts";
import { command } from "../../cli.ts";
import { count, duration, plural } from "../../format.ts";

/** Work that no live worker can claim. */
export function unclaimable(pending: readonly PendingWork[]): readonly PendingWork[] {
  return pending.filter(({ reasons }) => reasons[0]?.reason === "no_worker");
}

const NOUNS: Readonly<Record<PendingWork["kind"], readonly [string, string]>> = {
  start: ["run that has not started", "runs that have not started"],
  run: ["run", "runs"],
  task: ["task", "tasks"],
  node: ["node", "nodes"],
  message: ["message", "messages"],
};

export function workText({ kind, count: many }: Pick<PendingWork, "kind" | "count">): string {
  const [one, more] = NOUNS[kind];
  return plural(many, one, more);
}

export interface Totals {
  readonly alive: number;
  readonly workers: number;
  readonly slots: number;
  readonly used: number;
  readonly stepsPerSecond: number;
  readonly lost: number;
  readonly oldest: { readonly queue: string; readonly ms: number } | undefined;
}

export function totalsOf(queues: readonly QueueBody[], workers: readonly WorkerBody[], now: number): Totals {
  const alive = workers.filter((worker) => worker.alive);
  const sum = (values: readonly (number | undefined)[]): number =>
    values.reduce<number>((all, one) => all + (one ?? 0), 0);
  const waiting = queues
    .filter(({ oldestReadyAt, paused }) => oldestReadyAt !== undefined && !paused)
    .map(({ name, oldestReadyAt }) => ({ queue: name, ms: now - Date.parse(oldestReadyAt!) }))
    .toSorted((a, b) => b.ms - a.ms);
  return {
    alive: alive.length,
    workers: workers.length,
    slots: sum(alive.map(({ concurrency }) => concurrency)),
    used: sum(alive.map(({ running }) => running)),
    stepsPerSecond: sum(alive.map(({ stepsPerSecond }) => stepsPerSecond)),
    lost: workers.length - alive.length,
    oldest: waiting[0],
  };
}

const perText = (ms: number): string =>
  ({ 1000: "s", 60_000: "min", 3_600_000: "h", 86_400_000: "day" })[ms] ?? duration(ms);

export function rateText(limits: QueueLimitsBody): string {
  const parts: string[] = [];
  if (limits.rate !== undefined) parts.push(`${count(limits.rate.limit)} per ${perText(limits.rate.per)}`);
  if (limits.perKey?.concurrency !== undefined) parts.push(`per key ${count(limits.perKey.concurrency)} at once`);
  if (limits.perKey?.rate !== undefined)
    parts.push(`per key ${count(limits.perKey.rate.limit)} per ${perText(limits.perKey.rate.per)}`);
  return parts.join(", ");
}

const rateWord = ({ limit, per }: { readonly limit: number; readonly per: number }): string => `${limit}/${per}ms`;

/** The command that sets these limits. */
export function limitCommand(name: string, { concurrency, rate, perKey }: QueueLimitsBody): string {
  const options = [
    ...(concurrency === undefined ? [] : ["--concurrency", String(concurrency)]),
    ...(rate === undefined ? [] : ["--rate", rateWord(rate)]),
    ...(perKey?.concurrency === undefined ? [] : ["--key-concurrency", String(perKey.concurrency)]),
    ...(perKey?.rate === undefined ? [] : ["--key-rate", rateWord(perKey.rate)]),
  ];
  return command("queue", "limit", name, ...(options.length === 0 ? ["--none"] : options));
}

/** Waits of the oldest work since the page was opened, per queue; at most 60 samples. */
export class WaitSamples {
  readonly #samples = new Map<string, number[]>();

  add(queues: readonly QueueBody[], now: number): void {
    for (const { name, oldestReadyAt } of queues) {
      const samples = this.#samples.get(name) ?? [];
      samples.push(oldestReadyAt === undefined ? 0 : Math.max(0, now - Date.parse(oldestReadyAt)));
      if (samples.length > 60) samples.shift();
      this.#samples.set(name, samples);
    }
  }

  of(name: string): readonly number[] {
    const samples = this.#samples.get(name) ?? [];
    // A line needs two points.
    return samples.length === 1 ? [samples[0]!, samples[0]!] : samples;
  }
}
