// Plan: everything that follows from one completion, as the parts of one commit (seed 001, "CompletionPlan").
//
// plan.P1. Pure: the same outcome gives the same plan. The worker provides claims and children through the host.
// plan.P2. A kept value is encoded once, and the nodes derived from it see the decoded text, as in a replay.
// plan.P3. An inline function that throws fails the run with its node. The value of the head is kept: a retry derives from
//   it again and does not repeat the head.
// plan.P4. An arrival names an entry of the same plan by its index, or none for the run's first entry.

import { inspect } from "node:util";
import { decode, encode, invariant, RepriseError, type PayloadLimits } from "../base/index.ts";
import {
  memoText,
  nodeRoute,
  type Claim,
  type CompleteWrite,
  type ExecutionFacts,
  type NewEntry,
  type NewMemo,
  type NodeArrival,
  type NodeItem,
  type RunRecord,
  type SpreadPortion,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { FlowBody } from "./definition.ts";
import { evaluate, SKIPPED, type PlannedArrival } from "./evaluate.ts";
import { portionItemName, type NodeRef } from "./items.ts";
import { hasKey, isPortioned, slotOf } from "./keys.ts";
import type { FlowNode } from "./node.ts";
import type { Region } from "./regions.ts";

export type CompletionPlan = Omit<CompleteWrite, "write" | "run" | "fence">;

export interface PlanHost {
  readonly record: Pick<RunRecord, "id" | "parent" | "parentCommand" | "priority">;
  readonly limits: PayloadLimits | undefined;
  /** A lease for a node that may become ready; undefined leaves it to any worker. `label`: the node's, or the flow's. */
  claim(node: FlowNode, route: string, label: string | undefined): Claim | undefined;
}

/** The outcome of a node; attempts count from 0. */
export type NodeOutcome =
  | {
      readonly outcome: "value";
      readonly value: unknown;
      readonly attempt: number;
      /** Errors of earlier attempts, encoded. */
      readonly failures?: string | undefined;
      /** The error that `catch` turned into the value. */
      readonly caught?: unknown;
      readonly ran?: ExecutionFacts | undefined;
      /** The key of the memo that the value was reused from. */
      readonly reused?: string | undefined;
      /** Remembers the value of a pure node: its key, and the runtime of the process. */
      readonly remember?: Pick<NewMemo, "memo" | "by"> | undefined;
    }
  | { readonly outcome: "skip" }
  | {
      readonly outcome: "failure";
      readonly error: unknown;
      readonly attempt: number;
      readonly failures?: string | undefined;
      readonly ran?: ExecutionFacts | undefined;
    };

const NONE: readonly never[] = [];
const CONTINUE = { arrivals: NONE, advances: NONE, children: NONE, messages: NONE, then: "continue" } as const;

/** The default number of items of a spread that are queued at once. */
const WINDOW = 1_024;
/** The length of a spread's items in one entry, in UTF-16 units. */
const ITEMS_CHUNK = 32_768;

export function planCompletion(body: FlowBody, ref: NodeRef, outcome: NodeOutcome, host: PlanHost): CompletionPlan {
  if (ref.index !== undefined) return planItem(body, ref, ref.index, outcome, host);
  const { region } = ref.head;
  switch (outcome.outcome) {
    case "skip":
      return planSkip(body, region, host);
    case "failure":
      return failed(ref.item, outcome, host, [failedEntry(ref.item, outcome)]);
    case "value":
      return planValue(body, region, outcome, host);
  }
}

// ── heads ──

function planValue(
  body: FlowBody,
  region: Region,
  outcome: NodeOutcome & { outcome: "value" },
  host: PlanHost,
): CompletionPlan {
  const { head } = region;
  if (head.work.kind === "spread") return planSpread(body, region, outcome.value, host);
  // The list of a barrier is in the entries of its items, the output in the run's last entry, the input in its first.
  const isStored = head.work.kind !== "barrier" && head.work.kind !== "output" && head.work.kind !== "input";
  let result: string | undefined;
  let value = outcome.value;
  if (isStored)
    try {
      result = entryData.encodeNamed(`The value of node ${head.id}`, value, host.limits);
      // plan.P2
      if (typeof value === "object" && result !== undefined) value = decode(result);
    } catch (error) {
      const { attempt, failures, ran } = outcome;
      const failure = { outcome: "failure", error, attempt, failures, ran } as const;
      return failed(head.id, failure, host, [failedEntry(head.id, failure)]);
    }
  const evaluated = evaluate(region, value, (node, derived) => keptText(node, derived, host.limits));
  const kept = evaluated.status === "done" ? allKept(evaluated.kept) : undefined;
  const skipped = evaluated.status === "done" && evaluated.skipped.length > 0 ? evaluated.skipped : undefined;
  const own: NewEntry = {
    type: "NodeCompleted",
    command: head.id,
    data: entryData.record({
      attempt: outcome.attempt === 0 ? undefined : String(outcome.attempt),
      caught: outcome.caught === undefined ? undefined : entryData.errorText(outcome.caught),
      failures: outcome.failures,
      kept,
      result,
      reused: outcome.reused && encode(outcome.reused),
      skipped: skipped && encode(skipped),
    }),
    ran: factsOf(outcome, result),
  };
  // plan.P3
  if (evaluated.status === "threw") {
    const { node, error } = evaluated;
    const failure = { outcome: "failure", error, attempt: 0 } as const;
    return failed(node, failure, host, [own, failedEntry(node, failure)], againOf(head));
  }
  // The input is in the first entry of the run already.
  const hasNoEntry = head.work.kind === "input" && kept === undefined && skipped === undefined;
  const entries = hasNoEntry ? [] : [own];
  const causeOf = (edge: string): number | undefined => (edge === "input" || hasNoEntry ? undefined : 0);
  const arrivals = arrivalsOf(body, evaluated.arrivals, causeOf, host);
  if (evaluated.output === undefined) return { ...CONTINUE, entries, arrivals };
  return completed(host, entries, evaluated.output.value, againOf(head));
}

/** The facts of the execution, with the row of a pure node's value. */
function factsOf(
  { ran, remember }: NodeOutcome & { outcome: "value" },
  result: string | undefined,
): ExecutionFacts | undefined {
  return ran === undefined || remember === undefined ? ran : { ...ran, memo: { ...remember, value: memoText(result) } };
}

/** The head whose stored value a retry can derive from; undefined if it has none. */
function againOf({ id, work }: FlowNode): string | undefined {
  return work.kind === "action" || work.kind === "call" || work.kind === "input" ? id : undefined;
}

function planSkip(body: FlowBody, region: Region, host: PlanHost): CompletionPlan {
  const { head } = region;
  const entries: NewEntry[] = [{ type: "NodeSkipped", command: head.id, data: "{}" }];
  if (head.work.kind === "spread") {
    // rules.F3. One skip, to the barrier.
    const barrier = barrierOf(body, head);
    const arrival: NodeArrival = {
      target: barrier.id,
      edge: head.id,
      index: -1,
      kind: "skip",
      required: 1,
      cause: 0,
      node: nodeItemOf(body, barrier, host),
    };
    return { ...CONTINUE, entries, arrivals: [arrival] };
  }
  const evaluated = evaluate(region, SKIPPED, (node, derived) => keptText(node, derived, host.limits));
  if (evaluated.status === "threw")
    return failed(evaluated.node, { outcome: "failure", error: evaluated.error, attempt: 0 }, host, entries);
  const arrivals = arrivalsOf(body, evaluated.arrivals, () => 0, host);
  if (evaluated.output !== undefined) return completed(host, entries, evaluated.output.value);
  return { ...CONTINUE, entries, arrivals };
}

// ── spreads ──

function planSpread(body: FlowBody, { head }: Region, items: unknown, host: PlanHost): CompletionPlan {
  const barrier = barrierOf(body, head);
  let chunks: Chunks;
  let keys: Keys | undefined;
  try {
    if (!Array.isArray(items))
      throw new RepriseError(
        "BAD_FLOW",
        `Flow ${body.name}: expected a list as the items of ${barrier.id}, got ${inspect(items, { depth: 0 })}.`,
      );
    chunks = chunksOf(barrier.id, items, host.limits);
    // keys.K1
    if (isPortioned(head)) keys = items.map((item, index) => slotOf(body, head, item, index).key ?? null);
  } catch (error) {
    return failed(head.id, { outcome: "failure", error, attempt: 0 }, host, [
      failedEntry(head.id, { outcome: "failure", error, attempt: 0 }),
    ]);
  }
  const { length } = chunks;
  invariant(
    chunks.texts.length === Math.ceil(length / chunks.perEntry),
    "Every entry of a spread but the last is full, so that an item's entry is found by its index.",
  );
  const { window = WINDOW } = head.work as { window?: number };
  const entries: NewEntry[] = [
    { type: "NodeCompleted", command: head.id, data: `{"result":${length}}` },
    ...chunks.texts.map((text, index): NewEntry => {
      const from = index * chunks.perEntry;
      const of = keys === undefined ? "" : `,"keys":${encode(keys.slice(from, from + chunks.perEntry))}`;
      return { type: "ItemsSpread", command: head.id, data: `{"from":${from},"items":${text}${of}}` };
    }),
  ];
  const spread = {
    barrier: barrier.id,
    barrierNode: nodeItemOf(body, barrier, host),
    required: length,
    window,
    cause: 1,
    perEntry: chunks.perEntry,
  };
  if (keys !== undefined) {
    const portion = portionOf(body, head, keys.slice(0, chunks.perEntry * entriesPerPortion(chunks.perEntry)), host);
    return { ...CONTINUE, entries, spread: { ...spread, node: portion.node, claims: [], portion } };
  }
  const { claim: first, ...node } = nodeItemOf(body, head, host);
  const claims = first === undefined ? [] : [first];
  while (claims.length > 0 && claims.length < Math.min(length, window)) {
    const claim = host.claim(head, node.name, labelOf(body, head));
    if (claim === undefined) break;
    claims.push(claim);
  }
  return { ...CONTINUE, entries, spread: { ...spread, node, claims } };
}

/** One per item; null: no key. */
type Keys = readonly (string | null)[];

/** How many items of a spread with keys a commit queues, and how many of their entries a worker reads for it. */
const PORTION_ITEMS = 1_000;
const PORTION_ENTRIES = 16;

/** Entries whose items one commit queues; `perEntry`: how many items an entry has. */
export function entriesPerPortion(perEntry: number): number {
  return Math.max(1, Math.min(PORTION_ENTRIES, Math.floor(PORTION_ITEMS / perEntry)));
}

/** Queues the next items of a spread; runs no user code (keys.K2). */
export function planPortion(body: FlowBody, ref: NodeRef, keys: Keys, host: PlanHost): CompletionPlan {
  const { head } = ref.head.region;
  const barrier = barrierOf(body, head).id;
  return { ...CONTINUE, entries: NONE, portion: { barrier, ...portionOf(body, head, keys, host) } };
}

function portionOf(body: FlowBody, spread: FlowNode, keys: Keys, host: PlanHost): SpreadPortion {
  const next = { item: portionItemName(spread.name), node: nodeItemOf(body, spread, host) };
  const queue = spread.slotOptions?.queue.name;
  // The code may have lost its key, or its queue, after the items were spread.
  const node = {
    name: routeOf(body, spread),
    priority: host.record.priority,
    ...(queue !== undefined && { slot: { queue } }),
  };
  return { keys: hasKey(spread) ? keys : keys.map(() => null), node, next };
}

interface Chunks {
  /** The number of items. */
  readonly length: number;
  readonly texts: readonly string[];
  readonly perEntry: number;
}

/** Every entry holds the same number of items, so that an item's entry is found by its index. */
function chunksOf(barrier: string, items: readonly unknown[], limits: PayloadLimits | undefined): Chunks {
  // Not `map`, which leaves out holes.
  const texts = Array.from(items, (item, index) => {
    const what = `Item ${index} of ${barrier}`;
    if (!(index in items))
      throw new RepriseError(
        "NOT_DATA",
        `${what} is a hole in the list, which cannot be stored. Use undefined or null.`,
      );
    return entryData.encodeNamed(what, item, limits) ?? NOTHING;
  });
  const longest = texts.reduce((max, { length }) => Math.max(max, length), 1);
  const perEntry = Math.max(1, Math.min(1_000, Math.floor(ITEMS_CHUNK / longest)));
  const chunks: string[] = [];
  for (let from = 0; from < texts.length; from += perEntry)
    chunks.push(`[${texts.slice(from, from + perEntry).join(",")}]`);
  return { length: texts.length, texts: chunks, perEntry };
}

function planItem(body: FlowBody, ref: NodeRef, index: number, outcome: NodeOutcome, host: PlanHost): CompletionPlan {
  const spread = ref.head.region.head;
  invariant(spread.work.kind === "spread" && index >= 0, "An indexed item belongs to a spread.");
  const barrier = barrierOf(body, spread);
  const arrive = (entry: NewEntry, kind: "value" | "failure"): CompletionPlan => ({
    ...CONTINUE,
    entries: [entry],
    arrivals: [
      {
        target: barrier.id,
        edge: spread.id,
        index,
        kind,
        required: undefined,
        cause: 0,
        node: nodeItemOf(body, barrier, host),
      },
    ],
    // Also with a key, which the code may have got after the items were spread: the store knows how they are queued.
    advances: [{ barrier: barrier.id, node: nodeItemOf(body, spread, host) }],
  });
  invariant(outcome.outcome !== "skip", "An item of a spread is never skipped on its own.");
  let end: NodeOutcome = outcome;
  if (outcome.outcome === "value")
    try {
      const result = entryData.encodeNamed(`The value of node ${ref.item}`, outcome.value, host.limits);
      const reused = outcome.reused && encode(outcome.reused);
      const data = entryData.taskCompletedData(outcome.attempt, result, outcome.failures, reused);
      return arrive({ type: "NodeCompleted", command: ref.item, data, ran: factsOf(outcome, result) }, "value");
    } catch (error) {
      const { attempt, failures, ran } = outcome;
      end = { outcome: "failure", error, attempt, failures, ran };
    }
  const entry = failedEntry(ref.item, end as Failure);
  const settles = spread.work.kind === "spread" && spread.work.settle;
  return settles ? arrive(entry, "failure") : failed(ref.item, end as Failure, host, [entry]);
}

// ── ends ──

type Failure = NodeOutcome & { readonly outcome: "failure" };

function failedEntry(node: string, { error, attempt, failures, ran }: Failure): NewEntry {
  return { type: "NodeFailed", command: node, data: entryData.taskFailedData(attempt, error, failures), ran };
}

function completed(host: PlanHost, entries: readonly NewEntry[], value: unknown, again?: string): CompletionPlan {
  let output: string | undefined;
  try {
    output = entryData.encodeNamed("The output of the flow", value, host.limits);
  } catch (error) {
    return failed(undefined, { outcome: "failure", error, attempt: 0 }, host, entries, again);
  }
  const last: NewEntry = { type: "RunCompleted", command: "", data: entryData.runCompletedData(output) };
  return {
    ...CONTINUE,
    entries: [...entries, last],
    messages: answer(host, (id) => ["ChildWorkflowCompleted", entryData.childCompletedData(id, output)]),
    then: "completed",
  };
}

function failed(
  at: string | undefined,
  { error }: Failure,
  host: PlanHost,
  entries: readonly NewEntry[],
  again?: string,
): CompletionPlan {
  const data = entryData.runFailedData(error, { at, entries: entries.length, again });
  return planEnd(host, "failed", entries, { type: "RunFailed", command: "", data }, error);
}

/** Ends the run with `last`. The commit drops its queued nodes and cancels its live children. */
export function planEnd(
  host: PlanHost,
  then: "failed" | "cancelled",
  entries: readonly NewEntry[],
  last: NewEntry,
  error: unknown,
): CompletionPlan {
  return {
    ...CONTINUE,
    entries: [...entries, last],
    messages: answer(host, (id) => ["ChildWorkflowFailed", entryData.childFailedData(id, error)]),
    then,
    cancel: entryData.cancelRequestedData(then === "failed" ? "The flow failed." : undefined),
  };
}

function answer(
  { record }: PlanHost,
  make: (id: string) => readonly ["ChildWorkflowCompleted" | "ChildWorkflowFailed", string],
): CompletionPlan["messages"] {
  const { parent, parentCommand, id } = record;
  if (parent === undefined || parentCommand === undefined) return NONE;
  const [type, data] = make(id);
  return [{ to: parent, arrival: { type, target: parentCommand, data } }];
}

// ── helpers ──

/** The arrivals that leave a region, for the heads of other regions. */
function arrivalsOf(
  body: FlowBody,
  planned: readonly PlannedArrival[],
  causeOf: (edge: string) => number | undefined,
  host: PlanHost,
): readonly NodeArrival[] {
  return planned.map(({ target, edge, isSkip }) => {
    const { required, region } = body.regions.get(target)!;
    // regions.R1, regions.R2
    invariant(region.head.id === target && required > 0, "An arrival goes to the head of a region that waits for it.");
    const kind = isSkip ? "skip" : "value";
    return { target, edge, index: -1, kind, required, cause: causeOf(edge), node: nodeItemOf(body, region.head, host) };
  });
}

function barrierOf({ nodes }: FlowBody, spread: FlowNode): FlowNode {
  return nodes.get(spread.name) as FlowNode;
}

/** The queue item of a node that becomes ready. */
export function nodeItemOf(body: FlowBody, node: FlowNode, host: PlanHost): NodeItem {
  const { priority } = host.record;
  if (node.slotOptions !== undefined && !hasKey(node))
    return { name: routeOf(body, node), priority, slot: { queue: node.slotOptions.queue.name } };
  // keys.K1. A node with a key waits outside of its queue for a worker that computes the key.
  const name = nodeRoute(body.name, body.version, undefined, node.label);
  const claim = host.claim(node, name, labelOf(body, node));
  return { name, priority, ...(claim && { claim }) };
}

/** The route of a node in its queue. */
export function routeOf({ name, version }: FlowBody, { slotOptions, label }: FlowNode): string {
  return nodeRoute(name, version, slotOptions?.queue.name, label);
}

function labelOf(body: FlowBody, node: FlowNode): string | undefined {
  return node.label ?? body.label;
}

function keptText(node: string, value: unknown, limits: PayloadLimits | undefined): string {
  return entryData.encodeNamed(`The value of node ${node}`, value, limits) ?? NOTHING;
}

function allKept(kept: ReadonlyMap<string, string>): string | undefined {
  if (kept.size === 0) return undefined;
  const parts = [...kept.keys()].toSorted().map((name) => `${JSON.stringify(name)}:${kept.get(name)}`);
  return `{${parts.join(",")}}`;
}

const NOTHING = encode(undefined);
