// Read timeline: the Gantt chart of a run, from its journal, the executions without an entry, and its open work.
//
// read-timeline.R1. The folds of the runs that were read last are kept: a page that follows a long run reads its new entries only. A
//   fold is used again only if the store still has its last entry, unchanged.

import { edgesInto, SPREAD_SUFFIX, type FlowBody } from "../../flow/index.ts";
import { hasEnded, type RunRecord, type Store } from "../../kernel/index.ts";
import type { Timeline } from "../../contract/index.ts";
import { idempotencyKeyOf } from "../../workflow/index.ts";
import type { ServerHost } from "../host.ts";
import { TimelineFold } from "./timeline-fold.ts";
import { holdingsOf, takeoversOf, workedMs } from "./timeline-holders.ts";
import { rawRowsOf, rowOf, type RawRow } from "./timeline-rows.ts";
import { accessOf, isoOf, type View } from "./view.ts";

const PAGE = 2_000;
const MAX_FOLDS = 16;

const foldsOf = new WeakMap<Store, Map<number, TimelineFold>>();

export interface TimelinePage {
  readonly limit: number;
  /** The number of rows before the page. */
  readonly after: number;
}

export async function readTimeline(
  host: ServerHost,
  record: RunRecord,
  view: View,
  { limit, after }: TimelinePage,
): Promise<Timeline> {
  const { store } = host;
  const { run, createdAt, endedAt } = record;
  const isOver = hasEnded(record.status);
  // Open work is read before the journal: a step that ends in between is shown once, as ended.
  const work = isOver ? undefined : await store.readRunWork(run);
  const fold = await foldOf(store, record);
  const attempts = await store.readAttempts(run);
  const workers = work === undefined ? [] : await store.listWorkers();
  const workerName = (worker: number | undefined): string | undefined =>
    worker === undefined ? undefined : workers.find((one) => one.worker === worker)?.name;
  const flow = accessOf(host).registry.findFlow(record.definition, record.version);
  const startedAt = fold.times[0] ?? createdAt;
  const facts = { fold, attempts, work, workerName, needs: flow && needsOf(flow), startedAt, view };
  const rows = rawRowsOf(facts);
  const holder = workerName(work?.turn.worker);
  const holders = { fold, attempts, turn: work?.turn, holder, rows };
  const end = after + limit;
  return {
    run: record.id,
    startedAt: isoOf(startedAt),
    ...(endedAt !== undefined && { endedAt: isoOf(endedAt) }),
    now: isoOf(view.now),
    rows: rows.slice(after, end).map((row) => rowOf(row, view, keyOf(row, record, fold))),
    more: rows.length > end,
    ...(rows.length > end && { next: String(end) }),
    holdings: holdingsOf(holders),
    takeovers: takeoversOf(holders),
    workedMs: workedMs(rows, endedAt ?? view.now),
  };
}

/** Undefined for a step whose key depends on more than its name: of a retried run, of a graph and of a flow. */
function keyOf({ draft }: RawRow, { id, generation, kind }: RunRecord, fold: TimelineFold): string | undefined {
  const isExecuted = draft.kind === "task" || draft.kind === "operation";
  if (!isExecuted || kind !== "workflow" || fold.wasRetried) return undefined;
  return idempotencyKeyOf(id, generation, draft.command);
}

/** read-timeline.R1 */
async function foldOf(store: Store, { run, head }: RunRecord): Promise<TimelineFold> {
  const folds = foldsOf.get(store) ?? new Map<number, TimelineFold>();
  foldsOf.set(store, folds);
  let fold = folds.get(run) ?? new TimelineFold();
  folds.delete(run);
  if (fold.lastSeq > 0) {
    const [last] = await store.readJournal(run, fold.lastSeq - 1, 1);
    if (last?.mark !== fold.lastMark) fold = new TimelineFold();
  }
  while (fold.lastSeq < head) {
    const page = await store.readJournal(run, fold.lastSeq, Math.min(PAGE, head - fold.lastSeq));
    for (const entry of page) fold.read(entry);
    if (page.length === 0) break;
  }
  folds.set(run, fold);
  for (const oldest of folds.keys()) if (folds.size > MAX_FOLDS) folds.delete(oldest);
  return fold;
}

/** The nodes that a node of a flow waits for. */
function needsOf({ nodes }: FlowBody): (node: string) => readonly string[] {
  return (name) => {
    const node = nodes.get(name) ?? nodes.get(`${name}${SPREAD_SUFFIX}`);
    return node === undefined ? [] : edgesInto(node).map(({ source }) => source.replace(/\[\]$/, ""));
  };
}
