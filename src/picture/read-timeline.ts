// Read timeline: the Gantt chart of a run, from its journal, the executions without an entry, and its open work.

import type { Timeline } from "../contract/index.ts";
import { edgesInto, SPREAD_SUFFIX, type FlowBody } from "../flow/index.ts";
import { hasEnded, type RunRecord, type Store } from "../kernel/index.ts";
import { idempotencyKeyOf } from "../workflow/index.ts";
import { runFolds, type RunFold } from "./run-fold.ts";
import { holdingsOf, takeoversOf, workedMs } from "./timeline-holders.ts";
import { isoOf, rawRowsOf, rowOf, type RawRow, type RowFacts, type ShowError } from "./timeline-rows.ts";

export interface TimelinePage {
  readonly limit: number;
  /** The number of rows before the page. */
  readonly after: number;
}

export interface TimelineOptions {
  /** The code of a flow, if this process has it: it tells when a node could start. */
  readonly flow: FlowBody | undefined;
  readonly showError: ShowError;
}

export async function readTimeline(
  store: Store,
  record: RunRecord,
  { flow, showError }: TimelineOptions,
  { limit, after }: TimelinePage,
): Promise<Timeline> {
  const { endedAt } = record;
  const facts = await readRowFacts(store, record, flow);
  const { fold, attempts, work, workerName, startedAt, now } = facts;
  const rows = rawRowsOf(facts);
  const holders = { fold, attempts, turn: work?.turn, holder: workerName(work?.turn.worker), rows };
  const end = after + limit;
  return {
    run: record.id,
    startedAt: isoOf(startedAt),
    ...(endedAt !== undefined && { endedAt: isoOf(endedAt) }),
    now: isoOf(now),
    rows: rows.slice(after, end).map((row) => rowOf(row, showError, keyOf(row, record, fold))),
    more: rows.length > end,
    ...(rows.length > end && { next: String(end) }),
    holdings: holdingsOf(holders),
    takeovers: takeoversOf(holders),
    workedMs: workedMs(rows, endedAt ?? now),
  };
}

export async function readRowFacts(store: Store, record: RunRecord, flow: FlowBody | undefined): Promise<RowFacts> {
  const { run, createdAt, status } = record;
  // Open work is read before the journal: a step that ends in between is shown once, as ended.
  const work = hasEnded(status) ? undefined : await store.readRunWork(run);
  const fold = await runFolds.read(store, record);
  const attempts = await store.readAttempts(run);
  const workers = work === undefined ? [] : await store.listWorkers();
  return {
    fold,
    steps: fold.steps,
    attempts,
    work,
    workerName: (worker) => (worker === undefined ? undefined : workers.find((one) => one.worker === worker)?.name),
    needs: flow && needsOf(flow),
    startedAt: fold.times[0] ?? createdAt,
    now: store.now(),
  };
}

/** Undefined for a step whose key depends on more than its name: of a retried run, of a graph and of a flow. */
function keyOf({ draft }: RawRow, { id, generation, kind }: RunRecord, fold: RunFold): string | undefined {
  const isExecuted = draft.kind === "task" || draft.kind === "operation";
  if (!isExecuted || kind !== "workflow" || fold.wasRetried) return undefined;
  return idempotencyKeyOf(id, generation, draft.command);
}

/** The nodes that a node of a flow waits for. */
function needsOf({ nodes }: FlowBody): (node: string) => readonly string[] {
  return (name) => {
    const node = nodes.get(name) ?? nodes.get(`${name}${SPREAD_SUFFIX}`);
    return node === undefined ? [] : edgesInto(node).map(({ source }) => source.replace(/\[\]$/, ""));
  };
}
