// Diff of flows: node by node, from the first one that differs.
//
// diff-nodes.N1. Nodes are in topological order: that of the definition if this process has it, otherwise the order in which they
//   ended. "input" is the first, "output" the last.

import { errorOf, type Entry } from "../kernel/index.ts";
import { effectiveFlowEntries, isNodeEnd, parseItemName, type FlowBody } from "../flow/index.ts";
import { diffItems, type DiffItem, type StepAnswer, type ValueDiff } from "./diff-items.ts";
import type { Side } from "./diff-runs.ts";

/** A node that two runs of a flow differ in, in `FlowDiff.nodes`. */
export interface NodeDiff {
  /** As in the journal: `price`, `saved[3]` for an item of a spread, "input", "output". */
  readonly node: string;
  /** In which runs it has ended. */
  readonly in: "both" | "here" | "there";
  readonly answer?: ValueDiff<StepAnswer>;
}
/** How two runs of a flow differ, as `run.diff` returns it. */
export interface FlowDiff {
  /** The first node that differs; undefined if none does. */
  readonly firstDivergence: string | undefined;
  readonly nodes: readonly NodeDiff[];
  /** True if further nodes differ; raise the limit to read them. */
  readonly more: boolean;
}

const OUTPUT_PLACE = Number.POSITIVE_INFINITY;

export async function diffNodes(here: Side, there: Side, limit: number, body: FlowBody | undefined): Promise<FlowDiff> {
  const [a, b] = await Promise.all([readNodes(here), readNodes(there)]);
  const placeOf = placesOf(body, [...new Set([...a.keys(), ...b.keys()])]);
  const keys = [...new Set([...a.keys(), ...b.keys()])].toSorted(
    (one, two) => placeOf(one) - placeOf(two) || itemIndex(one) - itemIndex(two),
  );
  const { items, more } = diffItems(keys, a, b, limit);
  const nodes = items.map(({ key, in: where, answer }): NodeDiff => ({
    node: key,
    in: where,
    ...(answer && { answer }),
  }));
  return { firstDivergence: nodes[0]?.node, nodes, more };
}

async function readNodes({ store, record }: Side): Promise<ReadonlyMap<string, DiffItem>> {
  const nodes = new Map<string, DiffItem>();
  const put = (node: string, answer: StepAnswer): void => void nodes.set(node, { isRequested: true, answer });
  const entries: readonly Entry[] = await store.readJournal(record.run, 0, record.head);
  for (const entry of effectiveFlowEntries(entries)) {
    if (entry.type === "RunStarted") put("input", { status: "completed", value: entry.data.input });
    else if (entry.type === "RunCompleted") put("output", { status: "completed", value: entry.data.output });
    else if (entry.type === "RunFailed") put("output", { status: "failed", error: errorOf(entry.data) });
    else if (entry.type === "RunCancelled") put("output", { status: "cancelled" });
    // A child that is retried on its own answers its parent again; the first answer counts.
    else if (isNodeEnd(entry) && !nodes.has(entry.command)) {
      if (entry.type === "NodeSkipped") put(entry.command, { status: "skipped" });
      else if (entry.type === "NodeFailed") put(entry.command, { status: "failed", error: errorOf(entry.data) });
      else {
        put(entry.command, { status: "completed", value: entry.data.result });
        for (const [name, value] of Object.entries(entry.data.kept ?? {})) put(name, { status: "completed", value });
        for (const name of entry.data.skipped ?? []) put(name, { status: "skipped" });
      }
    }
  }
  return nodes;
}

/** diff-nodes.N1 */
function placesOf(body: FlowBody | undefined, seen: readonly string[]): (node: string) => number {
  const places = new Map([...(body?.nodes.keys() ?? seen.map(nodeOf))].map((node, place) => [node, place]));
  return (node) => {
    if (node === "input") return -1;
    if (node === "output") return OUTPUT_PLACE;
    return places.get(node) ?? places.get(nodeOf(node)) ?? places.size;
  };
}

function nodeOf(item: string): string {
  return parseItemName(item).node;
}

function itemIndex(item: string): number {
  return parseItemName(item).index ?? -1;
}
