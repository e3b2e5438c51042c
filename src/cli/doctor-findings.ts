// Doctor findings: what `doctor` reports besides broken invariants: pending work, stopped runs by reason, stalled runs,
// undelivered messages and the store's history.

import { formatMs } from "../base/index.ts";
import type { HistoryEvent, Problem, RunRecord, Store, StoreInfo, VersionCount } from "../kernel/index.ts";
import { findExpiredLeases, readStalledRuns, type StalledRuns } from "./doctor-leases.ts";
import { explainBacklog, type ExplainedBacklog } from "../explain/index.ts";
import { memoGroups, stepOf } from "./memo.ts";
import { pendingTexts } from "./pending-work.ts";
import { findRunError } from "./run-format.ts";
import { pluralize, plain } from "./text.ts";

/** Runs that stopped for the same reason. */
export interface StoppedRuns {
  readonly status: "blocked" | "determinism_violation";
  readonly code: string;
  readonly runs: number;
  /** The newest ones. */
  readonly ids: readonly string[];
  readonly next: string;
}

export interface Findings {
  /** Work that is ready and that no worker has claimed. */
  readonly pending: readonly ExplainedBacklog[];
  readonly versions: readonly VersionCount[];
  readonly stopped: readonly StoppedRuns[];
  /** There are more stopped runs than were read. */
  readonly more: boolean;
  readonly stalled: StalledRuns;
  readonly history: readonly HistoryEvent[];
  /** memo.M3. Steps that are declared pure and are not. */
  readonly divergent: readonly DivergentStep[];
  /** Undefined: the ends of runs are not recorded. */
  readonly log: LogFindings | undefined;
  /** Problems of workers, not of the data. */
  readonly problems: readonly Problem[];
}

/** The log of a federated store. */
export interface LogFindings {
  readonly records: number;
  /** Ended runs without a record; counting stops at 1,000. */
  readonly waiting: number;
}

const MAX_WAITING = 1_000;

async function readLogFindings(store: Store): Promise<LogFindings | undefined> {
  if (!(await store.isFederated())) return undefined;
  return { records: await store.logSize(), waiting: (await store.listEnded(MAX_WAITING)).length };
}

/** A number that grows means that no process with the key of the site runs. */
export function logLines({ log }: Findings): readonly string[] {
  if (log === undefined || log.waiting === 0) return [];
  const count = log.waiting === MAX_WAITING ? `${MAX_WAITING} or more runs` : pluralize(log.waiting, "run", "runs");
  return [`${count} ended without a record in the log yet`, "next: reprise serve, or reprise push"];
}

/** A step that returned different results for one input. */
export interface DivergentStep {
  readonly key: string;
  readonly step: string;
  readonly definition: string;
  readonly runs: readonly string[];
}

/** How many of them are reported. */
const MAX_DIVERGENT = 20;

async function readDivergent(store: Store): Promise<readonly DivergentStep[]> {
  const found: DivergentStep[] = [];
  for await (const { memo, status, rows } of memoGroups(store, true)) {
    const [first] = rows;
    if (status !== "divergent" || first === undefined) continue;
    const runs = rows.map(({ runId }) => runId);
    found.push({ key: memo, step: stepOf(first), definition: first.definition, runs });
    if (found.length === MAX_DIVERGENT) break;
  }
  return found;
}

export function divergentLines({ divergent }: Findings): readonly string[] {
  return divergent.map(
    ({ step, definition, runs }) =>
      `${plain(step)} of ${plain(definition)} is declared pure, but returned different results for one input in ${runs.map(plain).join(", ")}; not reused. \`reprise memo list --off\` shows them.`,
  );
}

const STOPPED_STATUSES = ["blocked", "determinism_violation"] as const;
/** The number of stopped runs whose evidence is read. */
const MAX_STOPPED = 1_000;
const IDS_SHOWN = 3;

export async function readFindings(store: Store): Promise<Findings> {
  const workers = await store.listWorkers();
  const waiting = await explainBacklog(store, await store.readBacklog(), workers);
  const versions = await store.countVersions();
  const records = await store.listRuns({ statuses: STOPPED_STATUSES, limit: MAX_STOPPED + 1 });
  const groups = new Map<string, StoppedRuns>();
  for (const { id, generation } of records.slice(0, MAX_STOPPED)) {
    const record = await store.findRun(id, generation);
    if (record === undefined || !isStopped(record)) continue;
    const { code = record.status, next = "" } = findRunError(record, undefined) ?? {};
    const key = `${record.status} ${code}`;
    const { runs, ids } = groups.get(key) ?? { runs: 0, ids: [] };
    const shown = ids.length < IDS_SHOWN ? [...ids, id] : ids;
    groups.set(key, { status: record.status, code, runs: runs + 1, ids: shown, next });
  }
  const stopped = [...groups.values()].toSorted((a, b) => b.runs - a.runs);
  return {
    pending: waiting,
    versions,
    stopped,
    more: records.length > MAX_STOPPED,
    stalled: await readStalledRuns(store, workers),
    history: await store.readHistory(),
    divergent: await readDivergent(store),
    log: await readLogFindings(store),
    problems: findExpiredLeases(workers, store.now()),
  };
}

function isStopped(record: RunRecord): record is RunRecord & { readonly status: StoppedRuns["status"] } {
  return STOPPED_STATUSES.some((status) => status === record.status);
}

export function pendingLines({ pending }: Findings, now: number): readonly string[] {
  return pending.flatMap((one) => pendingTexts(one, now));
}

export function stoppedLines({ stopped, more }: Findings): readonly string[] {
  const lines = stopped.map(({ status, code, runs, ids }) => {
    const others = runs - ids.length;
    const named = `${ids.map(plain).join(", ")}${others > 0 ? ` and ${others} more` : ""}`;
    return `${runs} ${status}, ${code}: ${named}`;
  });
  return more ? [...lines, `more than ${MAX_STOPPED} in total; only the newest were read`] : lines;
}

export function outboxLines({ outbox }: StoreInfo, now: number): readonly string[] {
  return outbox.destinations.map(({ destination, pending, failing, attempts, oldestAt }) => {
    const waits = `${pluralize(pending, "message", "messages")} to ${plain(destination)}, oldest ${formatMs(now - oldestAt)}`;
    if (failing === 0) return waits;
    return `${waits}; ${failing} failing, up to ${pluralize(attempts, "attempt", "attempts")}`;
  });
}
