// Check flow: the counters of a flow's nodes match their arrivals, and every ready node is queued or has ended.

import { hasEnded, type Entry, type RunNumber, type RunStatus } from "../../kernel/index.ts";
import type { CheckStatements } from "./check-store.ts";
import type { Fault } from "./check-journal.ts";

export const CHECK_FLOWS_SQL = {
  counters: `select node, required, completed, queued, "window",
      (select count(*) from arrivals where arrivals.run = readiness.run and target = node) as arrived
    from readiness where run = ? order by node`,
  uncounted: `select distinct target from arrivals where run = ?
    and not exists (select 1 from readiness where readiness.run = arrivals.run and node = target)`,
  uncaused: `select target, edge, idx, seq from arrivals where run = ?
    and not exists (select 1 from journal where journal.run = arrivals.run and journal.seq = arrivals.seq) limit 20`,
  liveChild: `select 1 from runs as child indexed by runs_by_root
    where child.root = (select root from runs where run = ?1) and child.root <> child.run and child.parent = ?1
      and ended_at is null limit 1`,
} as const;

const COUNTERS = "I2 counters match arrivals";
const READY = "I3 ready means queued";
const CAUSES = "I5 arrivals have causes";

interface Counter {
  readonly node: string;
  readonly required: number;
  readonly completed: number;
  readonly queued: number | null;
  readonly window: number | null;
  readonly arrived: number;
}

interface Uncaused {
  readonly target: string;
  readonly edge: string;
  readonly idx: number;
  readonly seq: number;
}

/** After one of these a node is not queued any more: it has ended, or waits for the child it started. */
const ENDS: ReadonlySet<Entry["type"]> = new Set<Entry["type"]>([
  "NodeCompleted",
  "NodeFailed",
  "NodeSkipped",
  "ChildWorkflowInitiated",
]);

export class FlowCheck {
  readonly #sql: CheckStatements;
  readonly #run: RunNumber;
  readonly #ended = new Set<string>();
  readonly #skipped = new Set<string>();
  readonly #faults: Fault[] = [];

  constructor(sql: CheckStatements, run: RunNumber) {
    this.#sql = sql;
    this.#run = run;
  }

  see({ type, command }: Entry): void {
    if (ENDS.has(type)) this.#ended.add(command);
    if (type === "NodeSkipped") this.#skipped.add(command);
  }

  finish(status: RunStatus, items: readonly { readonly item: string; readonly kind: string }[]): readonly Fault[] {
    const counters = this.#sql.counters.all(this.#run) as unknown as Counter[];
    for (const counter of counters) this.#checkCounter(counter);
    for (const { target } of this.#sql.uncounted.all(this.#run) as unknown as { target: string }[])
      this.#fault(COUNTERS, `Node ${target} has arrivals but no counter.`);
    for (const { target, edge, idx, seq } of this.#sql.uncaused.all(this.#run) as unknown as Uncaused[])
      this.#fault(
        CAUSES,
        `The arrival at node ${target} from ${edge}${idx < 0 ? "" : ` at index ${idx}`} refers to entry ${seq}, which does not exist.`,
        seq,
      );
    const queued = new Set(items.flatMap(({ item, kind }) => (kind === "task" ? [item] : [])));
    if (!hasEnded(status)) this.#findLost(counters, queued);
    this.#findDoubled(counters, queued);
    return this.#faults;
  }

  #checkCounter({ node, required, completed, queued, arrived }: Counter): void {
    if (completed < 0 || completed > required)
      this.#fault(COUNTERS, `Node ${node} counts ${completed} arrivals and requires ${required}.`);
    if (completed !== arrived)
      this.#fault(COUNTERS, `Node ${node} counts ${completed} arrivals, but ${arrived} are stored.`);
    if (queued !== null && (queued < 0 || queued > required))
      this.#fault(COUNTERS, `The spread of ${node} has ${required} items and counts ${queued} queued ones.`);
  }

  /** Finds ready nodes, and spread items counted as queued, that are neither in the queue nor ended. */
  #findLost(counters: readonly Counter[], queued: ReadonlySet<string>): void {
    const isLost = (node: string): boolean => !queued.has(node) && !this.#ended.has(node);
    for (const { node, required, completed, queued: items } of counters) {
      if (completed === required && isLost(node))
        this.#fault(READY, `Node ${node} is ready but not in the queue: it will never run.`);
      for (let index = 0; index < (items ?? 0); index++)
        if (isLost(`${node}[${index}]`))
          this.#fault(READY, `Item ${node}[${index}] is not in the queue and has no result: it will never run.`);
    }
    for (const counter of counters)
      if (hasPortions(counter) && !queued.has(`${counter.node}[more]`))
        this.#fault(
          READY,
          `The spread of ${counter.node} has queued ${counter.queued} of ${counter.required} items, and ${counter.node}[more] is not in the queue: the others will never run.`,
        );
  }

  #findDoubled(counters: readonly Counter[], queued: ReadonlySet<string>): void {
    const byNode = new Map(counters.map((counter) => [counter.node, counter]));
    for (const item of queued) {
      if (this.#skipped.has(item)) this.#fault(READY, `Node ${item} is queued although it was skipped.`);
      if (!mayBeQueued(byNode, item)) this.#fault(READY, `Node ${item} is queued although it is not ready.`);
    }
  }

  #fault(invariant: string, message: string, seq?: number): void {
    this.#faults.push({ invariant, seq, message });
  }
}

/** A spread with limits per key has no window, and a node that queues the items that are left. */
function hasPortions({ queued, required, window }: Counter): boolean {
  return queued !== null && window === null && queued < required;
}

function mayBeQueued(counters: ReadonlyMap<string, Counter>, item: string): boolean {
  const counter = counters.get(item);
  if (counter !== undefined) return counter.completed === counter.required;
  const [, node = "", which] = /^(.*)\[(\d+|more|again)\]$/s.exec(item) ?? [];
  // A retry queues it, and the node has its value already.
  if (which === "again") return true;
  const spread = counters.get(node);
  if (spread === undefined || spread.queued === null) return false;
  return which === "more" ? hasPortions(spread) : Number(which) < spread.queued;
}
