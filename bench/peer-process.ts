// Peer process: one measurement of one contender: `peer-process.ts <JSON>` prints a line of JSON.
//
// Every workload is a closed loop: so many workflows are always under way, until enough have ended or the time is up.

import { performance } from "node:perf_hooks";
import { CHAIN_LENGTH } from "./graph-definitions.ts";
import { loadContender, type Contender } from "./peer-contender.ts";
import { usageOfTree } from "./server.ts";
import { percentile, round } from "./statistics.ts";

export const PEER_WORKLOADS = ["steps", "latency", "runs", "queue", "graph"] as const;
export type PeerWorkload = (typeof PEER_WORKLOADS)[number];

export interface PeerPlan {
  readonly contender: string;
  readonly workload: PeerWorkload;
  readonly scale: number;
  readonly url: string;
  readonly folder: string;
  /** The database server, whose CPU time counts. */
  readonly serverPid?: number;
}

export interface PeerResult {
  readonly perSecond: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  /** Of this process, the database server and the contender's own server, per step, run or job. */
  readonly cpuUs: number | null;
  readonly units: number;
}

interface Loop {
  readonly concurrency: number;
  readonly count: number;
  /** Steps per workflow. */
  readonly units: number;
}

const LOOPS: Readonly<Record<Exclude<PeerWorkload, "queue">, Loop>> = {
  steps: { concurrency: 200, count: 4_000, units: 10 },
  latency: { concurrency: 1, count: 300, units: 5 },
  runs: { concurrency: 1_000, count: 10_000, units: 1 },
  graph: { concurrency: 50, count: 2_000, units: CHAIN_LENGTH },
};
const JOBS = 10_000;
/** After this time no further workflow starts. */
const LONGEST_MS = 20_000;
const LEAST_LONGEST_MS = 8_000;
const CONNECTIONS = 20;
const QUEUE_CONCURRENCY = 64;

/** Ends this process. */
async function main(plan: PeerPlan): Promise<never> {
  const { workload, url, folder } = plan;
  const concurrency = workload === "queue" ? QUEUE_CONCURRENCY : LOOPS[workload].concurrency;
  const options = { connections: CONNECTIONS, queueConcurrency: QUEUE_CONCURRENCY, chainLength: CHAIN_LENGTH };
  const { open } = await loadContender(plan.contender);
  const contender = await open({ url, folder, concurrency, ...options });
  const result = workload === "queue" ? await drain(contender, plan) : await loop(contender, plan, LOOPS[workload]);
  process.stdout.write(`${JSON.stringify(result)}\n`);
  // Not every peer ends all it has started.
  await Promise.race([contender.close(), new Promise((resolve) => void setTimeout(resolve, 5_000))]);
  process.exit(0);
}

async function loop(contender: Contender, plan: PeerPlan, { concurrency, count, units }: Loop): Promise<PeerResult> {
  const one = async (): Promise<void> => {
    const result = plan.workload === "graph" ? await contender.chain?.() : await contender.run?.(units);
    if (result !== units) throw new Error(`${plan.contender}: expected ${units}, got ${String(result)}.`);
  };
  const goal = Math.max(1, Math.round(count * plan.scale));
  const atOnce = Math.min(concurrency, Math.ceil(goal / 4));
  const longestMs = longestOf(plan);
  await inLoop(one, atOnce, Math.ceil(goal / 4), longestMs / 4);
  const cpuBefore = cpuMsOf(contender, plan);
  const startedAt = performance.now();
  const latenciesMs = await inLoop(one, atOnce, goal, longestMs);
  const elapsedMs = performance.now() - startedAt;
  const cpuMs = cpuMsOf(contender, plan) - cpuBefore;
  const done = latenciesMs.length * units;
  return {
    perSecond: round((done / elapsedMs) * 1_000),
    p50Ms: round(percentile(latenciesMs, 0.5)),
    p99Ms: round(percentile(latenciesMs, 0.99)),
    cpuUs: round((cpuMs / done) * 1_000),
    units: done,
  };
}

/** The latency of each. All that have begun end, also when the time is up. */
async function inLoop(one: () => Promise<void>, atOnce: number, goal: number, longestMs: number): Promise<number[]> {
  const latenciesMs: number[] = [];
  let begun = 0;
  const deadline = performance.now() + longestMs;
  const follow = async (): Promise<void> => {
    while (begun < goal && performance.now() < deadline) {
      begun += 1;
      const startedAt = performance.now();
      await one();
      latenciesMs.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, goal) }, follow));
  return latenciesMs;
}

/** From the first job enqueued to the last one ended, or to those that have ended when the time is up. */
async function drain(contender: Contender, plan: PeerPlan): Promise<PeerResult> {
  let next = 0;
  const all = async (count: number, longestMs: number): Promise<number> => {
    const indexes = Array.from({ length: count }, () => (next += 1));
    let ended = 0;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, longestMs);
      contender
        .enqueue?.(indexes, () => {
          if ((ended += 1) === count) resolve();
        })
        .catch((error: unknown) => {
          console.error(error);
          process.exit(1);
        });
    });
    await over;
    clearTimeout(timer);
    return ended;
  };
  const goal = Math.max(1, Math.round(JOBS * plan.scale));
  const longestMs = longestOf(plan);
  await all(Math.ceil(goal / 10), longestMs);
  const cpuBefore = cpuMsOf(contender, plan);
  const startedAt = performance.now();
  const done = await all(goal, longestMs * 2);
  const elapsedMs = performance.now() - startedAt;
  const cpuMs = cpuMsOf(contender, plan) - cpuBefore;
  const perSecond = round((done / elapsedMs) * 1_000);
  return { perSecond, p50Ms: null, p99Ms: null, cpuUs: round((cpuMs / Math.max(1, done)) * 1_000), units: done };
}

function longestOf({ scale }: PeerPlan): number {
  return Math.max(LEAST_LONGEST_MS, LONGEST_MS * Math.min(1, scale));
}

function cpuMsOf({ pids = [] }: Contender, { serverPid }: PeerPlan): number {
  const { user, system } = process.cpuUsage();
  const others = [...pids, ...(serverPid === undefined ? [] : [serverPid])];
  return others.reduce((sum, pid) => sum + usageOfTree(pid).cpuMs, (user + system) / 1_000);
}

const [given] = process.argv.slice(2);
if (import.meta.main) await main(JSON.parse(given ?? "{}") as PeerPlan);
