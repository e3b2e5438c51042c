// Top view: one snapshot of the store for `reprise top`: workers, queues, throughput, the oldest pending work and work that
// no worker can claim. Rates are what the workers counted between their last two heartbeats.

import { stripVTControlCharacters } from "node:util";
import { formatMs } from "../base/index.ts";
import { queueInfoOf } from "../engine/index.ts";
import {
  DEFAULT_QUEUE,
  readWorkerProfile,
  readWorkerActivity,
  readNodeRoute,
  type HistoryEvent,
  type QueueState,
  type Store,
  type WorkerProfile,
  type WorkerActivity,
  type WorkerInfo,
} from "../kernel/index.ts";
import { eventText, historyJson } from "./store-history.ts";
import { paint } from "./output.ts";
import { limitsText, pausedCell, QUEUE_COLUMNS } from "./queue.ts";
import { explainBacklog, type ExplainedBacklog, type WaitReason } from "../explain/index.ts";
import { isUnclaimable, pendingJson } from "./pending-work.ts";
import { isoOf } from "./run-format.ts";
import { Table, type Cell } from "./table.ts";
import { pluralize, plain } from "./text.ts";
import { workerLabel } from "./worker-label.ts";

/** Counts stop here, so that a snapshot costs the same however large the backlog is. */
export const MAX_COUNT = 1_000;

/** The state of the store at one moment. */
export interface Snapshot {
  readonly now: number;
  readonly workers: readonly WorkerSnapshot[];
  readonly queues: readonly QueueState[];
  readonly pending: readonly ExplainedBacklog[];
  readonly history: readonly HistoryEvent[];
}

interface WorkerSnapshot {
  readonly info: WorkerInfo;
  readonly about: WorkerProfile | undefined;
  readonly doing: WorkerActivity | undefined;
  readonly isAlive: boolean;
  /** The time of its last heartbeat. */
  readonly beatAt: number | undefined;
}

export async function readSnapshot(store: Store): Promise<Snapshot> {
  const infos = await store.listWorkers();
  const queues = await store.listQueues(MAX_COUNT);
  const pending = await explainBacklog(store, await store.readBacklog(MAX_COUNT), infos);
  const history = await store.readHistory();
  const now = store.now();
  const workers = infos.map((info) => {
    const about = readWorkerProfile(info.profile);
    const beatAt = about && info.until - about.leaseMs;
    return { info, about, doing: readWorkerActivity(info.activity), isAlive: info.until > now, beatAt };
  });
  return { now, workers, queues, pending, history };
}

// ── figures ──

interface Rates {
  readonly runsStarted: number;
  readonly runsEnded: number;
  readonly steps: number;
}

function ratesOf({ doing, isAlive }: WorkerSnapshot): Rates {
  const perSecond = (count: number): number =>
    isAlive && doing !== undefined ? Math.round((count * 10_000) / doing.overMs) / 10 : 0;
  const { runsStarted = 0, runsEnded = 0, steps = 0 } = doing ?? {};
  return { runsStarted: perSecond(runsStarted), runsEnded: perSecond(runsEnded), steps: perSecond(steps) };
}

function totalOf(workers: readonly WorkerSnapshot[]): Rates {
  const sum = (part: keyof Rates): number =>
    Math.round(workers.reduce((total, worker) => total + ratesOf(worker)[part] * 10, 0)) / 10;
  return { runsStarted: sum("runsStarted"), runsEnded: sum("runsEnded"), steps: sum("steps") };
}

function oldestOf(pending: readonly ExplainedBacklog[]): ExplainedBacklog | undefined {
  return pending
    .filter(({ oldestAt }) => oldestAt !== undefined)
    .toSorted((a, b) => (a.oldestAt ?? 0) - (b.oldestAt ?? 0))[0];
}

// ── for programs ──

export function topJson(snapshot: Snapshot): object {
  const oldest = oldestOf(snapshot.pending);
  return {
    at: isoOf(snapshot.now),
    countedUpTo: MAX_COUNT,
    rates: totalOf(snapshot.workers),
    workers: snapshot.workers.map(workerJson),
    queues: snapshot.queues.map((queue) => ({
      ...queue,
      pausedAt: isoOf(queue.pausedAt),
      oldestReadyAt: isoOf(queue.oldestReadyAt),
      limits: queueInfoOf(queue).limits,
    })),
    pending: snapshot.pending.map(pendingJson),
    oldest: oldest === undefined ? null : pendingJson(oldest),
    unclaimable: snapshot.pending.filter(isUnclaimable).map(pendingJson),
    history: historyJson(snapshot.history),
  };
}

function workerJson(worker: WorkerSnapshot): object {
  const { info, about, doing, isAlive, beatAt } = worker;
  return {
    worker: info.worker,
    name: info.name,
    host: about?.host ?? null,
    pid: about?.pid ?? null,
    alive: isAlive,
    draining: doing?.isDraining ?? false,
    startedAt: isoOf(info.startedAt),
    beatAt: isoOf(beatAt),
    until: isoOf(info.until),
    runsHeld: doing?.runsHeld ?? null,
    running: doing?.running ?? null,
    concurrency: about?.concurrency ?? null,
    rates: ratesOf(worker),
    definitions: about?.definitions ?? null,
    tasks: about?.items.filter((name) => readNodeRoute(name) === undefined) ?? null,
    queues: about?.queues ?? null,
    labels: about?.labels ?? null,
  };
}

// ── for people ──

export function topLines(snapshot: Snapshot, title: string, width: number): readonly string[] {
  return [
    ...headLines(snapshot, title, width),
    "",
    ...workerLines(snapshot, width),
    "",
    ...queueLines(snapshot, width),
    ...notMovingLines(snapshot),
  ];
}

function headLines({ now, workers, pending, history }: Snapshot, title: string, width: number): readonly string[] {
  const alive = workers.filter(({ isAlive }) => isAlive).length;
  const gone = workers.length - alive;
  const { runsStarted, runsEnded, steps } = totalOf(workers);
  const oldest = oldestOf(pending);
  const [last] = history.filter(({ at }) => now - at < A_DAY_MS);
  const live = `${paint("dim", "workers")}  ${alive === 0 ? paint("yellow", "none live") : `${alive} live`}${gone > 0 ? paint("yellow", `, ${gone} expired`) : ""}`;
  const rates = `${paint("dim", "rates")}  ${rateText(runsStarted)} runs started, ${rateText(runsEnded)} ended, ${rateText(steps)} steps per second`;
  return [
    `${paint("bold", `reprise top`)}  ${plain(title)}  ${paint("dim", new Date(now).toISOString())}`,
    ...joinedIfFits(live, rates, width),
    ...joinedIfFits(
      `${paint("dim", "pending")}  ${pendingCounts(pending)}`,
      oldest === undefined ? "" : `${paint("dim", "oldest")}  ${oldestText(oldest, now)}`,
      width,
    ),
    ...(last === undefined
      ? []
      : [`${paint("dim", "history")}  ${paint("yellow", `${formatMs(now - last.at)} ago: ${eventText(last)}`)}`]),
  ];
}

/** Two parts of the head, on one line if there is room. */
function joinedIfFits(first: string, second: string, width: number): readonly string[] {
  if (second === "") return [first];
  const line = `${first}   ${second}`;
  return stripVTControlCharacters(line).length <= width ? [line] : [first, second];
}

/** Store events are shown for a day. */
const A_DAY_MS = 86_400_000;

function oldestText({ kind, name, version, queue, oldestAt = 0 }: ExplainedBacklog, now: number): string {
  const what = kind === "turn" || kind === "start" ? "run of" : kind === "node" ? "node of" : "task";
  const which = `${what} ${plain(name)}${version === undefined ? "" : ` v${version}`}`;
  return `${formatMs(Math.max(0, now - oldestAt))}, ${which}${queue === undefined ? "" : ` in ${plain(queue)}`}`;
}

function pendingCounts(pending: readonly ExplainedBacklog[]): string {
  const kinds = [
    [["turn"], "due run", "due runs"],
    [["start"], "run not started", "runs not started"],
    [["task"], "task", "tasks"],
    [["node"], "node", "nodes"],
  ] as const;
  const parts = kinds.flatMap(([[kind], one, several]) => {
    const rows = pending.filter((row) => row.kind === kind);
    const count = rows.reduce((sum, row) => sum + row.count, 0);
    if (count === 0) return [];
    return [reachesMaxCount(rows) ? `${count}+ ${several}` : pluralize(count, one, several)];
  });
  return parts.join(", ") || "nothing";
}

function workerLines({ workers, now }: Snapshot, width: number): readonly string[] {
  const table = new Table(
    [
      { title: "WORKER", minWidth: 16, clipsMiddle: true },
      { title: "HOST", minWidth: 8, dropOrder: 1 },
      { title: "UP", dropOrder: 2 },
      { title: "BEAT" },
      { title: "RUNS", right: true },
      { title: "RUNNING", right: true },
      { title: "ENDED/S", right: true, dropOrder: 3 },
      { title: "STEPS/S", right: true },
      { title: "CLAIMS", minWidth: 20 },
    ],
    width,
  );
  return table.render(workers.map((worker) => workerCells(worker, now)));
}

function workerCells(worker: WorkerSnapshot, now: number): readonly Cell[] {
  const { info, about, doing } = worker;
  const { runsEnded, steps } = ratesOf(worker);
  return [
    workerLabel(info.name, info.worker),
    about?.host ?? "",
    formatMs(Math.max(0, now - info.startedAt)),
    beatCell(worker, now),
    doing === undefined ? "" : String(doing.runsHeld),
    about === undefined ? "" : `${doing?.running ?? 0}/${about.concurrency}`,
    doing === undefined ? "" : rateText(runsEnded),
    doing === undefined ? "" : rateText(steps),
    about === undefined ? "" : claimsText(about),
  ];
}

function beatCell({ info, doing, isAlive, beatAt }: WorkerSnapshot, now: number): Cell {
  const yellow = (text: string): string => paint("yellow", text);
  if (!isAlive) return { text: `expired ${formatMs(now - info.until)}`, paint: yellow };
  const age = beatAt === undefined ? "" : formatMs(Math.max(0, now - beatAt));
  return doing?.isDraining === true ? { text: `${age} draining`, paint: yellow } : age;
}

/** `labels gpu; queues mail; order v2; charge, refund` */
function claimsText({ labels, queues, definitions, items }: WorkerProfile): string {
  const tasks = items.filter((name) => readNodeRoute(name) === undefined);
  const parts = [
    labels === undefined ? "any label" : labels.length > 0 ? `labels ${labels.join(", ")}` : "",
    queues === undefined ? "" : `queues ${queues.join(", ")}`,
    definitions.map(({ name, version }) => `${name} v${version}`).join(", "),
    tasks.join(", "),
  ];
  return parts.filter((part) => part !== "").join("; ");
}

function queueLines({ queues, pending, now }: Snapshot, width: number): readonly string[] {
  return new Table(QUEUE_COLUMNS, width).render(
    queues.map((queue) => [
      queue.name,
      reachesMaxCount(pending.filter((one) => one.kind !== "turn" && (one.queue ?? DEFAULT_QUEUE) === queue.name))
        ? `${queue.ready}+`
        : String(queue.ready),
      cappedText(queue.leased),
      cappedText(queue.delayed),
      queue.oldestReadyAt === undefined ? "" : formatMs(Math.max(0, now - queue.oldestReadyAt)),
      limitsText(queueInfoOf(queue).limits),
      pausedCell(queueInfoOf(queue)),
    ]),
  );
}

/** Work that no live worker can claim, and work that a queue holds back. */
function notMovingLines({ pending, now }: Snapshot): readonly string[] {
  const lines = pending
    .flatMap((one) => one.reasons.map((reason) => ({ one, why: shortReason(reason, now) })))
    .flatMap(({ one, why }) => (why === undefined ? [] : [`  ${paint("yellow", notMovingLine(one, why, now))}`]));
  return lines.length === 0 ? [] : ["", paint("dim", "NOT MOVING"), ...lines];
}

/** Undefined: nothing holds the work back. */
function shortReason(reason: WaitReason, now: number): string | undefined {
  switch (reason.reason) {
    case "no_worker":
      if (reason.workers.length === 0) return "no live worker";
      if (reason.label !== undefined) return `needs label ${plain(reason.label)}`;
      if (reason.queue !== undefined) return `needs a worker for queue ${plain(reason.queue)}`;
      return "needs a worker with this definition";
    case "queue_paused":
      return `queue ${plain(reason.queue)} is paused`;
    case "concurrency_limit":
      return `queue ${plain(reason.queue)} is full, ${reason.held} of ${reason.limit}`;
    case "rate_limit": {
      const left = reason.opensAt === undefined ? undefined : reason.opensAt.getTime() - now;
      return `queue ${plain(reason.queue)} has used its rate${left === undefined ? "" : `, opens in ${formatMs(Math.max(0, left))}`}`;
    }
    default:
      return undefined;
  }
}

/** The reason comes before the parts that a narrow line may clip. */
function notMovingLine(pending: ExplainedBacklog, why: string, now: number): string {
  const { kind, name, version, queue, count, oldestAt } = pending;
  const [one, several] = {
    turn: ["run", "runs"],
    start: ["run", "runs"],
    task: ["task", "tasks"],
    node: ["node", "nodes"],
  }[kind] as [string, string];
  const of = kind === "task" ? plain(name) : `of ${plain(name)} v${version}`;
  const where = queue === undefined ? "" : `, in ${plain(queue)}`;
  const since = oldestAt === undefined ? "" : `, oldest ${formatMs(Math.max(0, now - oldestAt))}`;
  return `${reachesMaxCount([pending]) ? `${count}+ ${several}` : pluralize(count, one, several)} ${of}: ${why}${where}${since}`;
}

/** There may be more than was counted. */
function reachesMaxCount(rows: readonly ExplainedBacklog[]): boolean {
  return rows.some(({ count }) => count >= MAX_COUNT);
}

function cappedText(count: number): string {
  return count >= MAX_COUNT ? `${count}+` : String(count);
}

function rateText(perSecond: number): string {
  return perSecond >= 100 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
}
