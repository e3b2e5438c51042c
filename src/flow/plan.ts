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
  queueSlotOf,
  nodeRoute,
  type Claim,
  type CompleteWrite,
  type NewEntry,
  type NodeArrival,
  type NodeItem,
  type RunRecord,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { FlowBody } from "./definition.ts";
import { evaluate, SKIPPED, type PlannedArrival } from "./evaluate.ts";
import type { NodeRef } from "./items.ts";
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
    }
  | { readonly outcome: "skip" }
  | {
      readonly outcome: "failure";
      readonly error: unknown;
      readonly attempt: number;
      readonly failures?: string | undefined;
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
      const failure = { outcome: "failure", error, attempt: outcome.attempt, failures: outcome.failures } as const;
      return failed(head.id, failure, host, [failedEntry(head.id, failure)]);
    }
  const evaluated = evaluate(region, value, (node, derived) => keptText(node, derived, host.limits));
  const kept = evaluated.status === "done" ? allKept(evaluated.kept) : undefined;
  const skipped = evaluated.status === "done" && evaluated.skipped.length > 0 ? evaluated.skipped : undefined;
  const own: NewEntry = {
    type: "NodeCompleted",
    command: head.id,
    data: entryData.record(
      ["attempt", outcome.attempt === 0 ? undefined : String(outcome.attempt)],
      ["caught", outcome.caught === undefined ? undefined : entryData.errorText(outcome.caught)],
      ["failures", outcome.failures],
      ["kept", kept],
      ["result", result],
      ["skipped", skipped && encode(skipped)],
    ),
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
  try {
    if (!Array.isArray(items))
      throw new RepriseError(
        "BAD_FLOW",
        `Flow ${body.name}: expected a list as the items of ${barrier.id}, got ${inspect(items, { depth: 0 })}.`,
      );
    chunks = chunksOf(barrier.id, items, host.limits);
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
  const { claim: first, ...node } = nodeItemOf(body, head, host);
  const claims = first === undefined ? [] : [first];
  while (claims.length > 0 && claims.length < Math.min(length, window)) {
    const claim = host.claim(head, node.name, labelOf(body, head));
    if (claim === undefined) break;
    claims.push(claim);
  }
  return {
    ...CONTINUE,
    entries: [
      { type: "NodeCompleted", command: head.id, data: `{"result":${length}}` },
      ...chunks.texts.map((text, index): NewEntry => {
        const from = index * chunks.perEntry;
        return { type: "ItemsSpread", command: head.id, data: `{"from":${from},"items":${text}}` };
      }),
    ],
    spread: {
      barrier: barrier.id,
      barrierNode: nodeItemOf(body, barrier, host),
      required: length,
      window,
      cause: 1,
      perEntry: chunks.perEntry,
      node,
      claims,
    },
  };
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
    advances: [{ barrier: barrier.id, node: nodeItemOf(body, spread, host) }],
  });
  invariant(outcome.outcome !== "skip", "An item of a spread is never skipped on its own.");
  let end: NodeOutcome = outcome;
  if (outcome.outcome === "value")
    try {
      const result = entryData.encodeNamed(`The value of node ${ref.item}`, outcome.value, host.limits);
      const data = entryData.taskCompletedData(outcome.attempt, result, outcome.failures);
      return arrive({ type: "NodeCompleted", command: ref.item, data }, "value");
    } catch (error) {
      end = { outcome: "failure", error, attempt: outcome.attempt, failures: outcome.failures };
    }
  const entry = failedEntry(ref.item, end as Failure);
  const settles = spread.work.kind === "spread" && spread.work.settle;
  return settles ? arrive(entry, "failure") : failed(ref.item, end as Failure, host, [entry]);
}

// ── ends ──

type Failure = NodeOutcome & { readonly outcome: "failure" };

function failedEntry(node: string, { error, attempt, failures }: Failure): NewEntry {
  return { type: "NodeFailed", command: node, data: entryData.taskFailedData(attempt, error, failures) };
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
  const slot = node.slotOptions && queueSlotOf(node.slotOptions, undefined, `Flow ${body.name}: node ${node.id}`);
  const name = nodeRoute(body.name, body.version, slot?.queue, node.label);
  if (slot !== undefined) return { name, priority, slot };
  const claim = host.claim(node, name, labelOf(body, node));
  return { name, priority, ...(claim && { claim }) };
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
