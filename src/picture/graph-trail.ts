// Graph trail: the committed steps of a graph's run: which nodes ran in each, over which edges, and the children that they started.
//
// graph-trail.T1. The nodes of a step are the frontier of the step before (graph-run.G1).
// graph-trail.T2. A fork has the steps of its origin before the one it starts from (fork.F1). The nodes of that one ran in the origin.
// graph-trail.T3. A checkpoint names the first arrival of a join only. A join that ran was reached over all its edges; one that waits lists
//   what arrived.

import { RepriseError } from "../base/index.ts";
import { attemptOf, eachEntry, readLineage, tallyOf, type NodeTally } from "../explain/index.ts";
import {
  decodeData,
  nodeItemOf,
  type Entry,
  type FrontierItemData,
  type RunRecord,
  type Store,
  type WaitingJoinData,
} from "../kernel/index.ts";
import { KeptFolds, type Fold } from "./kept-folds.ts";

export interface TrailNode extends NodeTally {
  /** The longest of its executions. */
  readonly tookMs: number | undefined;
}

/** An edge by its place among the targets of `from`; `from` is empty for START. */
export interface TakenEdge {
  readonly from: string;
  readonly edge: number;
  readonly to: string;
  readonly count: number;
}

export interface TrailStep {
  readonly step: number;
  readonly ran: readonly TrailNode[];
  /** To the nodes that run next. */
  readonly taken: readonly TakenEdge[];
  readonly next: readonly NodeTally[];
  readonly waiting: readonly { readonly node: string; readonly arrived: readonly string[] }[];
}

export class GraphTrail implements Fold {
  readonly isStale = false;
  readonly steps: TrailStep[] = [];
  /** By node, with the step in which it started them. */
  readonly children: { readonly node: string; readonly name: string; readonly step: number }[] = [];
  /** The nodes of the next step, by position. */
  frontier: readonly string[] = [];
  #attempts = new Map<number, number>();
  #times = new Map<string, number>();

  read({ type, command, data, tookMs }: Entry): void {
    if (type === "StepCommitted") return this.#commit(data);
    const item = nodeItemOf(command);
    const node = item && this.frontier[item.position];
    if (item === undefined || node === undefined) return;
    if (type === "ChildWorkflowInitiated") {
      const { childExecutionName: name } = decodeData("ChildWorkflowInitiated", data);
      this.children.push({ node, name, step: item.step });
    }
    if (type !== "NodeCompleted") return;
    // Keys are sorted, so `attempt` is the first one: the payload need not be decoded.
    const attempt = Number(/^\{"attempt":(\d+)/.exec(data)?.[1] ?? 0);
    this.#attempts.set(item.position, attemptOf({ attempt }));
    this.#times.set(node, Math.max(this.#times.get(node) ?? 0, tookMs ?? 0));
  }

  #commit(data: string): void {
    const { step, frontier, waiting = [] } = decodeData("StepCommitted", data);
    const ran = tallyOf(
      this.frontier.map((node) => ({ node })),
      (position) => this.#attempts.get(position) ?? 1,
    );
    this.steps.push({
      step,
      ran: ran.map((tally) => ({ ...tally, tookMs: this.#times.get(tally.node) })),
      taken: takenBy(frontier),
      next: tallyOf(frontier),
      waiting: waiting.map(({ node, arrived }: WaitingJoinData) => ({ node, arrived: arrived.map((one) => one.node) })),
    });
    this.frontier = frontier.map(({ node }) => node);
    this.#attempts = new Map();
    this.#times = new Map();
  }
}

function takenBy(frontier: readonly FrontierItemData[]): readonly TakenEdge[] {
  const groups = Map.groupBy(frontier, ({ parent, edge, node }) => JSON.stringify([parent, edge, node]));
  return [...groups.values()].map((items) => {
    const { parent, edge, node } = items[0]!;
    return { from: parent, edge, to: node, count: items.length };
  });
}

export const graphTrails = new KeptFolds<GraphTrail>(async (store, record) => {
  const trail = new GraphTrail();
  await readOrigins(store, record, trail);
  return trail;
});

/** graph-trail.T2 */
async function readOrigins(store: Store, record: RunRecord, trail: GraphTrail): Promise<void> {
  if (record.head === 0) return;
  const { ranges } = await readLineage(store, record).catch((error: unknown) => {
    // A copy of a fork may lack its origin: then the picture has the steps of the fork.
    if (error instanceof RepriseError && error.code === "STORE_CORRUPT") return { ranges: [] };
    throw error;
  });
  for (const { run, upTo } of ranges.slice(0, -1)) {
    const last = await store.findCheckpoint(run, upTo + 1, false);
    const end = last?.step === upTo + 1 ? last.seq - 1 : 0;
    await eachEntry(store, { ...record, run }, 0, end, (entry) => trail.read(entry));
  }
}
