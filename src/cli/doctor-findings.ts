// What doctor sees besides broken invariants: due runs nobody takes, stopped runs and why, runs that are held and do not move,
// messages that do not get out, and what happened to the store as a whole.

import { formatMs } from "../base/index.ts";
import type { HistoryEvent, Problem, RunRecord, Store, StoreInfo, VersionCount } from "../kernel/index.ts";
import { overdueLeases, quietRunsOf, type QuietRuns } from "./doctor-holders.ts";
import { takerText, waitingOf, waitingText, type Waiting } from "./serving.ts";
import { troubleOf } from "./shown-run.ts";
import { countOf, plain } from "./text.ts";

/** Runs that stand still for the same reason. */
export interface Stopped {
  readonly status: "blocked" | "determinism_violation";
  readonly code: string;
  readonly runs: number;
  /** The newest few. */
  readonly ids: readonly string[];
  readonly next: string;
}

export interface Findings {
  /** What is ready and that nobody has taken. */
  readonly waiting: readonly Waiting[];
  readonly versions: readonly VersionCount[];
  readonly stopped: readonly Stopped[];
  /** There are more stopped runs than were looked at. */
  readonly more: boolean;
  readonly quiet: QuietRuns;
  readonly history: readonly HistoryEvent[];
  /** Seen in what workers say, not in the data. */
  readonly problems: readonly Problem[];
}

const STOPPED = ["blocked", "determinism_violation"] as const;
/** The evidence of each is read. */
const LOOK_AT = 1_000;
const IDS_SHOWN = 3;

export async function findingsOf(store: Store): Promise<Findings> {
  const workers = await store.listWorkers();
  const waiting = waitingOf(await store.readBacklog(), workers, store.now());
  const versions = await store.countVersions();
  const records = await store.listRuns({ statuses: STOPPED, limit: LOOK_AT + 1 });
  const groups = new Map<string, Stopped>();
  for (const { id, generation } of records.slice(0, LOOK_AT)) {
    const record = await store.findRun(id, generation);
    if (record === undefined || !isStopped(record)) continue;
    const { code = record.status, next = "" } = troubleOf(record, undefined) ?? {};
    const key = `${record.status} ${code}`;
    const { runs, ids } = groups.get(key) ?? { runs: 0, ids: [] };
    const shown = ids.length < IDS_SHOWN ? [...ids, id] : ids;
    groups.set(key, { status: record.status, code, runs: runs + 1, ids: shown, next });
  }
  const stopped = [...groups.values()].toSorted((a, b) => b.runs - a.runs);
  return {
    waiting,
    versions,
    stopped,
    more: records.length > LOOK_AT,
    quiet: await quietRunsOf(store, workers),
    history: await store.readHistory(),
    problems: overdueLeases(workers, store.now()),
  };
}

function isStopped(record: RunRecord): record is RunRecord & { readonly status: Stopped["status"] } {
  return STOPPED.some((status) => status === record.status);
}

/** A run that waits for a place in its queue is as it should be while somebody works there. */
export function waitingLines({ waiting }: Findings, now: number): readonly string[] {
  return waiting
    .filter(({ kind, taker }) => kind !== "start" || taker !== "served")
    .map((one) => `${waitingText(one, now)}: ${takerText(one)}`);
}

export function stoppedLines({ stopped, more }: Findings): readonly string[] {
  const lines = stopped.map(({ status, code, runs, ids }) => {
    const others = runs - ids.length;
    const named = `${ids.map(plain).join(", ")}${others > 0 ? ` and ${others} more` : ""}`;
    return `${runs} ${status}, ${code}: ${named}`;
  });
  return more ? [...lines, `more than ${LOOK_AT} in all; the newest were looked at`] : lines;
}

export function outboxLines({ outbox }: StoreInfo, now: number): readonly string[] {
  return outbox.destinations.map(({ destination, pending, failing, attempts, oldestAt }) => {
    const waits = `${countOf(pending, "message", "messages")} to ${plain(destination)}, the oldest for ${formatMs(now - oldestAt)}`;
    if (failing === 0) return waits;
    return `${waits}; ${failing} failed so far, the worst ${countOf(attempts, "time", "times")}`;
  });
}
