// What `reprise top` shows: workers, queues, rates, the oldest thing that waits, and what nobody takes. Made of one cheap look
// at the store; rates are what the workers counted between their last two heartbeats.

import { formatMs } from "../base/index.ts";
import { queueInfoOf } from "../engine/index.ts";
import {
  DEFAULT_QUEUE,
  readAbout,
  readDoing,
  readNodeRoute,
  type HistoryEvent,
  type QueueState,
  type Store,
  type WorkerAbout,
  type WorkerDoing,
  type WorkerInfo,
} from "../kernel/index.ts";
import { eventText, historyJson } from "./history.ts";
import { paint } from "./output.ts";
import { limitsText, QUEUE_COLUMNS } from "./queue.ts";
import { isUnserved, waitingJson, waitingOf, type Waiting } from "./serving.ts";
import { isoOf } from "./shown-run.ts";
import { Table, type Cell } from "./table.ts";
import { countOf, plain } from "./text.ts";
import { workerLabel } from "./worker-label.ts";

/** Nothing is counted further than this, so that a look costs the same however much waits. */
export const COUNT_UP_TO = 1_000;

/** What was seen at one moment. */
export interface Look {
  readonly now: number;
  readonly workers: readonly SeenWorker[];
  readonly queues: readonly QueueState[];
  readonly waiting: readonly Waiting[];
  readonly history: readonly HistoryEvent[];
}

interface SeenWorker {
  readonly info: WorkerInfo;
  readonly about: WorkerAbout | undefined;
  readonly doing: WorkerDoing | undefined;
  readonly isAlive: boolean;
  /** When its last heartbeat was. */
  readonly beatAt: number | undefined;
}

export async function lookAt(store: Store): Promise<Look> {
  const infos = await store.listWorkers();
  const queues = await store.listQueues(COUNT_UP_TO);
  const backlog = await store.readBacklog(COUNT_UP_TO);
  const history = await store.readHistory();
  const now = store.now();
  const workers = infos.map((info) => {
    const about = readAbout(info.about);
    const beatAt = about && info.until - about.leaseMs;
    return { info, about, doing: readDoing(info.doing), isAlive: info.until > now, beatAt };
  });
  return { now, workers, queues, waiting: waitingOf(backlog, infos, now), history };
}

// ── figures ──

interface Rates {
  readonly runsBegun: number;
  readonly runsEnded: number;
  readonly steps: number;
}

function ratesOf({ doing, isAlive }: SeenWorker): Rates {
  const perSecond = (count: number): number =>
    isAlive && doing !== undefined ? Math.round((count * 10_000) / doing.overMs) / 10 : 0;
  const { runsBegun = 0, runsEnded = 0, steps = 0 } = doing ?? {};
  return { runsBegun: perSecond(runsBegun), runsEnded: perSecond(runsEnded), steps: perSecond(steps) };
}

function totalOf(workers: readonly SeenWorker[]): Rates {
  const sum = (part: keyof Rates): number =>
    Math.round(workers.reduce((total, worker) => total + ratesOf(worker)[part] * 10, 0)) / 10;
  return { runsBegun: sum("runsBegun"), runsEnded: sum("runsEnded"), steps: sum("steps") };
}

function oldestOf(waiting: readonly Waiting[]): Waiting | undefined {
  return waiting
    .filter(({ oldestAt }) => oldestAt !== undefined)
    .toSorted((a, b) => (a.oldestAt ?? 0) - (b.oldestAt ?? 0))[0];
}

// ── for programs ──

export function topJson(look: Look): object {
  const oldest = oldestOf(look.waiting);
  return {
    at: isoOf(look.now),
    countedUpTo: COUNT_UP_TO,
    rates: totalOf(look.workers),
    workers: look.workers.map(workerJson),
    queues: look.queues.map(({ oldestReadyAt, limits, ...queue }) => ({
      ...queue,
      oldestReadyAt: isoOf(oldestReadyAt),
      limits: queueInfoOf({ ...queue, oldestReadyAt, limits }).limits,
    })),
    waiting: look.waiting.map(waitingJson),
    oldest: oldest === undefined ? null : waitingJson(oldest),
    unserved: look.waiting.filter(isUnserved).map(waitingJson),
    history: historyJson(look.history),
  };
}

function workerJson(worker: SeenWorker): object {
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
    atWork: doing?.atWork ?? null,
    concurrency: about?.concurrency ?? null,
    rates: ratesOf(worker),
    definitions: about?.definitions ?? null,
    tasks: about?.items.filter((name) => readNodeRoute(name) === undefined) ?? null,
    queues: about?.queues ?? null,
    labels: about?.labels ?? null,
  };
}

// ── for people ──

export function topLines(look: Look, title: string, width: number): readonly string[] {
  return [
    ...headLines(look, title),
    "",
    ...workerLines(look, width),
    "",
    ...queueLines(look, width),
    ...nobodyLines(look),
  ];
}

function headLines({ now, workers, waiting, history }: Look, title: string): readonly string[] {
  const alive = workers.filter(({ isAlive }) => isAlive).length;
  const gone = workers.length - alive;
  const { runsBegun, runsEnded, steps } = totalOf(workers);
  const oldest = oldestOf(waiting);
  const [last] = history.filter(({ at }) => now - at < A_DAY_MS);
  const rates = `${rateText(runsBegun)} runs begun, ${rateText(runsEnded)} ended, ${rateText(steps)} steps per second`;
  return [
    `${paint("bold", `reprise top`)}  ${plain(title)}  ${paint("dim", new Date(now).toISOString())}`,
    `${paint("dim", "workers")}  ${alive === 0 ? paint("yellow", "none alive") : `${alive} alive`}${gone > 0 ? paint("yellow", `, ${gone} gone`) : ""}   ${paint("dim", "rates")}  ${rates}`,
    `${paint("dim", "waiting")}  ${waitingCounts(waiting)}${oldest === undefined ? "" : `   ${paint("dim", "oldest")}  ${oldestText(oldest, now)}`}`,
    ...(last === undefined
      ? []
      : [`${paint("dim", "history")}  ${paint("yellow", `${formatMs(now - last.at)} ago: ${eventText(last)}`)}`]),
  ];
}

/** What happened to the whole store, for as long as somebody may wonder. */
const A_DAY_MS = 86_400_000;

function oldestText({ kind, name, version, queue, oldestAt = 0 }: Waiting, now: number): string {
  const what = kind === "turn" || kind === "start" ? "run of" : kind === "node" ? "node of" : "task";
  const which = `${what} ${plain(name)}${version === undefined ? "" : ` v${version}`}`;
  return `${formatMs(Math.max(0, now - oldestAt))}, ${which}${queue === undefined ? "" : ` in ${plain(queue)}`}`;
}

function waitingCounts(waiting: readonly Waiting[]): string {
  const kinds = [
    [["turn"], "due run", "due runs"],
    [["start"], "run that has not begun", "runs that have not begun"],
    [["task"], "task", "tasks"],
    [["node"], "node", "nodes"],
  ] as const;
  const parts = kinds.flatMap(([[kind], one, several]) => {
    const rows = waiting.filter((row) => row.kind === kind);
    const count = rows.reduce((sum, row) => sum + row.count, 0);
    if (count === 0) return [];
    return [isCut(rows) ? `${count}+ ${several}` : countOf(count, one, several)];
  });
  return parts.join(", ") || "nothing";
}

function workerLines({ workers, now }: Look, width: number): readonly string[] {
  const table = new Table(
    [
      { title: "WORKER", least: 16, keepsEnds: true },
      { title: "HOST", least: 8 },
      { title: "UP" },
      { title: "BEAT" },
      { title: "RUNS", right: true },
      { title: "AT WORK", right: true },
      { title: "ENDED/S", right: true },
      { title: "STEPS/S", right: true },
      { title: "TAKES", least: 20 },
    ],
    width,
  );
  return table.render(workers.map((worker) => workerCells(worker, now)));
}

function workerCells(worker: SeenWorker, now: number): readonly Cell[] {
  const { info, about, doing } = worker;
  const { runsEnded, steps } = ratesOf(worker);
  return [
    workerLabel(info.name, info.worker),
    about?.host ?? "",
    formatMs(Math.max(0, now - info.startedAt)),
    beatCell(worker, now),
    doing === undefined ? "" : String(doing.runsHeld),
    about === undefined ? "" : `${doing?.atWork ?? 0}/${about.concurrency}`,
    doing === undefined ? "" : rateText(runsEnded),
    doing === undefined ? "" : rateText(steps),
    about === undefined ? "" : takesText(about),
  ];
}

function beatCell({ info, doing, isAlive, beatAt }: SeenWorker, now: number): Cell {
  const yellow = (text: string): string => paint("yellow", text);
  if (!isAlive) return { text: `gone ${formatMs(now - info.until)}`, paint: yellow };
  const age = beatAt === undefined ? "" : formatMs(Math.max(0, now - beatAt));
  return doing?.isDraining === true ? { text: `${age} draining`, paint: yellow } : age;
}

/** `labels gpu; queues mail; order v2; charge, refund` */
function takesText({ labels, queues, definitions, items }: WorkerAbout): string {
  const tasks = items.filter((name) => readNodeRoute(name) === undefined);
  const parts = [
    labels === undefined ? "any label" : labels.length > 0 ? `labels ${labels.join(", ")}` : "",
    queues === undefined ? "" : `queues ${queues.join(", ")}`,
    definitions.map(({ name, version }) => `${name} v${version}`).join(", "),
    tasks.join(", "),
  ];
  return parts.filter((part) => part !== "").join("; ");
}

function queueLines({ queues, waiting, now }: Look, width: number): readonly string[] {
  return new Table(QUEUE_COLUMNS, width).render(
    queues.map((queue) => [
      queue.name,
      isCut(waiting.filter((one) => one.kind !== "turn" && (one.queue ?? DEFAULT_QUEUE) === queue.name))
        ? `${queue.ready}+`
        : String(queue.ready),
      upTo(queue.leased),
      upTo(queue.delayed),
      queue.oldestReadyAt === undefined ? "" : formatMs(Math.max(0, now - queue.oldestReadyAt)),
      limitsText(queueInfoOf(queue).limits),
      queue.paused ? { text: "paused", paint: (text) => paint("yellow", text) } : "",
    ]),
  );
}

function nobodyLines({ waiting, now }: Look): readonly string[] {
  const lines = waiting.filter(isUnserved).map((one) => `  ${paint("yellow", nobodyText(one, now))}`);
  return lines.length === 0 ? [] : ["", paint("dim", "NOBODY TAKES"), ...lines];
}

/** What is missing comes before all that a narrow line may cut off. */
function nobodyText(waiting: Waiting, now: number): string {
  const { kind, name, version, queue, label, left, count, oldestAt, taker } = waiting;
  const [one, several] = {
    turn: ["run", "runs"],
    start: ["run", "runs"],
    task: ["task", "tasks"],
    node: ["node", "nodes"],
  }[kind] as [string, string];
  const of = kind === "task" ? plain(name) : `of ${plain(name)} v${version}`;
  const needed = label ?? left?.label;
  const why =
    taker === "alone"
      ? "no worker is alive"
      : needed !== undefined
        ? `needs label ${plain(needed)}`
        : left?.queue !== undefined
          ? `needs a worker for queue ${plain(left.queue)}`
          : "needs a worker that has it";
  const where = queue === undefined ? "" : `, in ${plain(queue)}`;
  const since = oldestAt === undefined ? "" : `, for ${formatMs(Math.max(0, now - oldestAt))}`;
  return `${isCut([waiting]) ? `${count}+ ${several}` : countOf(count, one, several)} ${of}: ${why}${where}${since}`;
}

/** There is more than was counted. */
function isCut(rows: readonly Waiting[]): boolean {
  return rows.some(({ count }) => count >= COUNT_UP_TO);
}

function upTo(count: number): string {
  return count >= COUNT_UP_TO ? `${count}+` : String(count);
}

function rateText(perSecond: number): string {
  return perSecond >= 100 ? String(Math.round(perSecond)) : perSecond.toFixed(1);
}
