// Flow fork: the rows of a run that starts with the nodes that another run of the flow has derived already.
//
// flow.F1. A changed node, and every node that follows from it, is derived again. Every other node that has ended keeps its entries,
//   which are copied: the arrivals of a run name entries of the same run (completion.C3).
// flow.F2. The counters are those that the commits of the copied entries would have written, in the order of the journal.
// flow.F3. A node that has all its inputs and has not ended is queued.

import { invariant } from "../base/index.ts";
import {
  errorOf,
  type CopiedArrival,
  type CopiedCounter,
  type CopiedFlow,
  type DecodedEntry,
  type Entry,
  type NewEntry,
  type NewSpread,
  type NodeItem,
  type RunRecord,
} from "../kernel/index.ts";
import { OUTPUT, type FlowBody } from "./definition.ts";
import { findRef, requireRef, spreadItemName, type NodeRef } from "./items.ts";
import { edgesInto, SPREAD_SUFFIX } from "./node.ts";
import { planCompletion, type CompletionPlan, type NodeOutcome, type PlanHost } from "./plan.ts";
import { effectiveFlowEntries, isNodeEnd, RecordedNodes, type NodeEndEntry } from "./recorded-nodes.ts";

export type FlowFork =
  | { readonly status: "ready"; readonly copy: CopiedFlow }
  /** The run has not reached the node. */
  | { readonly status: "not_reached"; readonly node: string }
  /** The output does not depend on the node. */
  | { readonly status: "unused"; readonly node: string };

/** The nodes that can be derived again: those with an entry of their own. An item of a spread is one, too. */
export function isForkable(body: FlowBody, node: string): boolean {
  const ref = findRef(body, nameOfHead(body, node));
  if (ref === undefined || ref.rederives || ref.isPortion) return false;
  const { kind } = ref.head.region.head.work;
  return kind === "action" || kind === "call" || kind === "spread";
}

/** A spread is named without brackets. */
function nameOfHead({ nodes }: FlowBody, node: string): string {
  return nodes.get(node)?.work.kind === "barrier" ? `${node}${SPREAD_SUFFIX}` : node;
}

/** The nodes in topological order, from the first on. */
export function sortNodes({ nodes }: FlowBody, names: readonly string[]): readonly string[] {
  const places = new Map([...nodes.keys()].map((id, place) => [id, place]));
  const placeOf = (name: string): number => places.get(name) ?? places.get(name.replace(/\[\d+\]$/, "")) ?? 0;
  return names.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/** `entries`: of a run that the flow's code replays without a difference. `changed`: forkable nodes. */
export function planFlowFork(
  body: FlowBody,
  record: Pick<RunRecord, "id" | "priority">,
  entries: readonly Entry[],
  changed: readonly string[],
): FlowFork {
  const heads = changed.map((node) => nameOfHead(body, node));
  const again = followers(body, heads);
  const [first = ""] = changed;
  for (const node of changed)
    if (!followers(body, [nameOfHead(body, node)]).has(OUTPUT)) return { status: "unused", node };
  const fold = new Fold(body, record, entries);
  fold.run((item) => !again.has(item) && !again.has(headOf(item)));
  const isReached = heads.some((head) => fold.ready.has(head));
  return isReached ? { status: "ready", copy: fold.copy() } : { status: "not_reached", node: first };
}

/** `saved[3]` belongs to `saved[]`. */
function headOf(item: string): string {
  return item.replace(/\[\d+\]$/, SPREAD_SUFFIX);
}

/** flow.F1. The nodes, and everything that follows from them. */
function followers({ nodes }: FlowBody, changed: readonly string[]): ReadonlySet<string> {
  const found = new Set(changed);
  // An item of a spread is followed by the barrier.
  for (const item of changed) if (/\[\d+\]$/.test(item)) found.add(item.replace(/\[\d+\]$/, ""));
  for (const node of nodes.values()) {
    const follows =
      edgesInto(node).some(({ source }) => found.has(source)) ||
      (node.work.kind === "barrier" && found.has(`${node.id}${SPREAD_SUFFIX}`));
    if (follows) found.add(node.id);
  }
  return found;
}

/** The commit that failed the run does not count. */
function withoutFailure(entries: readonly Entry[]): readonly DecodedEntry[] {
  const all = effectiveFlowEntries(entries);
  const last = all.at(-1);
  if (last?.type !== "RunFailed") return all;
  const { entries: count = 0, begun } = last.data;
  const from = begun === false ? last.seq - 1 : last.seq - count;
  return all.filter(({ seq }) => seq < from);
}

type Counter = { -readonly [K in keyof CopiedCounter]: CopiedCounter[K] };

/** flow.F2 */
class Fold {
  readonly ready = new Map<string, { readonly node: NodeItem; readonly seq: number }>();
  readonly #body: FlowBody;
  readonly #host: PlanHost;
  readonly #recorded: readonly DecodedEntry[];
  readonly #texts: ReadonlyMap<number, string>;
  readonly #nodes: RecordedNodes;
  readonly #entries: NewEntry[] = [];
  readonly #arrivals = new Map<string, CopiedArrival>();
  readonly #counters = new Map<string, Counter>();
  readonly #kept = new Set<string>();

  constructor(body: FlowBody, record: Pick<RunRecord, "id" | "priority">, entries: readonly Entry[]) {
    this.#body = body;
    this.#recorded = withoutFailure(entries);
    this.#texts = new Map(entries.map(({ seq, data }) => [seq, data]));
    this.#nodes = new RecordedNodes(entries);
    this.#host = {
      record: { ...record, parent: undefined, parentCommand: undefined },
      limits: undefined,
      claim: () => undefined,
    };
  }

  run(isKept: (item: string) => boolean): void {
    if (!this.#begin()) return;
    for (const entry of this.#recorded) {
      const { command } = entry;
      if (!isNodeEnd(entry) || command === "input" || this.#kept.has(command) || !isKept(command)) continue;
      const called = this.#recorded.findLast((one) => one.type === "ChildWorkflowInitiated" && one.command === command);
      if (called !== undefined) this.#push(called);
      this.#end(entry, this.#push(entry));
    }
    this.#queueItems();
  }

  copy(): CopiedFlow {
    return {
      entries: this.#entries,
      arrivals: [...this.#arrivals.values()],
      counters: [...this.#counters.values()],
      items: [...this.ready].flatMap(([item, { node, seq }]) => (this.#kept.has(item) ? [] : [{ item, node, seq }])),
    };
  }

  /** False: the run has not started. */
  #begin(): boolean {
    const value = { outcome: "value", value: this.#nodes.input, attempt: 0 } as const;
    const plan = planCompletion(this.#body, requireRef(this.#body, "input"), value, this.#host);
    const entry = this.#recorded.find(({ type, command }) => type === "NodeCompleted" && command === "input");
    if (plan.then !== "continue" || (plan.entries.length > 0 && entry === undefined)) return false;
    this.#apply(plan, entry === undefined ? 1 : this.#push(entry));
    return true;
  }

  /** The copy's `seq` of the entry. */
  #push({ seq, type, command }: DecodedEntry): number {
    const data = this.#texts.get(seq);
    invariant(data !== undefined, "A copied entry is an entry of the run.");
    this.#entries.push({ type, command, data });
    return 1 + this.#entries.length;
  }

  #end(entry: NodeEndEntry, seq: number): void {
    const { command } = entry;
    const ref = requireRef(this.#body, command);
    const outcome = this.#outcomeOf(ref, entry);
    if (ref.head.region.head.work.kind === "spread" && ref.index === undefined)
      for (const one of this.#recorded) if (one.type === "ItemsSpread" && one.command === command) this.#push(one);
    this.#kept.add(command);
    this.#apply(planCompletion(this.#body, ref, outcome, this.#host), seq);
  }

  #outcomeOf(ref: NodeRef, entry: NodeEndEntry): NodeOutcome {
    if (entry.type === "NodeSkipped") return { outcome: "skip" };
    if (entry.type === "NodeFailed") return { outcome: "failure", error: errorOf(entry.data), attempt: 0 };
    const { kind } = ref.head.region.head.work;
    const value =
      ref.index !== undefined
        ? entry.data.result
        : kind === "spread"
          ? this.#nodes.items(entry.command)
          : kind === "barrier"
            ? this.#nodes.list(entry.command, ref.head.region.head.work)
            : entry.data.result;
    return { outcome: "value", value, attempt: 0 };
  }

  /** `seq`: of the plan's first entry. */
  #apply(plan: CompletionPlan, seq: number): void {
    invariant(plan.then === "continue", "flow.F1: the output follows from the changed node");
    for (const { target, edge, index, kind, cause, required, node } of plan.arrivals) {
      const key = JSON.stringify([target, edge, index]);
      if (this.#arrivals.has(key)) continue;
      const at = cause === undefined ? 1 : seq + cause;
      this.#arrivals.set(key, { target, edge, index, kind, seq: at });
      const counter = this.#counters.get(target) ?? newCounter(target, required ?? 0);
      this.#counters.set(target, counter);
      counter.completed += 1;
      if (counter.completed === counter.required) this.ready.set(target, { node, seq: at });
    }
    if (plan.spread !== undefined) this.#spread(plan.spread, seq);
    for (const { barrier } of plan.advances) {
      const counter = this.#counters.get(barrier);
      if (counter?.window !== undefined && counter.queued !== undefined && counter.queued < counter.required)
        counter.queued += 1;
    }
  }

  readonly #spreads = new Map<string, { readonly node: NodeItem; readonly keys: readonly (string | null)[] }>();

  #spread({ barrier, required, window, perEntry, cause, node, portion, barrierNode }: NewSpread, seq: number): void {
    // keys.K2. With keys all items are queued: the copy does not need portions.
    const queued = portion === undefined ? Math.min(window, required) : required;
    const firstSeq = seq + cause;
    this.#counters.set(barrier, {
      ...newCounter(barrier, required),
      queued,
      window: portion === undefined ? window : undefined,
      firstSeq,
      perEntry,
    });
    const keys = this.#recorded.flatMap((entry) =>
      entry.type === "ItemsSpread" && entry.command === `${barrier}${SPREAD_SUFFIX}` ? (entry.data.keys ?? []) : [],
    );
    this.#spreads.set(barrier, { node: portion?.node ?? node, keys });
    if (required === 0) this.ready.set(barrier, { node: barrierNode, seq: firstSeq });
  }

  /** flow.F3, for the items of spreads. */
  #queueItems(): void {
    for (const [barrier, { node, keys }] of this.#spreads) {
      const counter = this.#counters.get(barrier);
      invariant(counter?.firstSeq !== undefined && counter.perEntry !== undefined, "A spread has its counter.");
      const { firstSeq, perEntry, required } = counter;
      let queued = counter.queued ?? 0;
      for (let index = 0; index < required; index += 1)
        if (this.#kept.has(spreadItemName(barrier, index))) queued = Math.max(queued, index + 1);
      counter.queued = queued;
      for (let index = 0; index < queued; index += 1) {
        const key = keys[index] ?? undefined;
        const item = key === undefined || node.slot === undefined ? node : { ...node, slot: { ...node.slot, key } };
        this.ready.set(spreadItemName(barrier, index), { node: item, seq: firstSeq + Math.floor(index / perEntry) });
      }
    }
  }
}

function newCounter(node: string, required: number): Counter {
  const none = { queued: undefined, window: undefined, firstSeq: undefined, perEntry: undefined };
  return { node, required, completed: 0, ...none };
}
