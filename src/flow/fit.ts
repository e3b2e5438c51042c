// Fit: whether a live run of a flow can continue with another version of the flow.
//
// fit.F1. A replay compares values. A run also depends on what its commits counted: which nodes have arrivals, along which edges,
//   and how many a node waits for. The new version must have counted the same, or a node would wait for ever or never run.
// fit.F2. Nodes that nothing has reached yet may be new, changed or removed.

import { isOfType, nodeRoute, type DecodedEntry, type Entry, type Readiness } from "../kernel/index.ts";
import type { ReplayDifference } from "../workflow/index.ts";
import type { FlowBody } from "./definition.ts";
import { findRef } from "./items.ts";
import { hasKey } from "./keys.ts";
import { effectiveFlowEntries, isNodeEnd } from "./recorded-nodes.ts";

export interface LiveFlow {
  readonly entries: readonly Entry[];
  readonly readiness: readonly Readiness[];
  /** The arrivals at the nodes of `readiness`; those at barriers may be left out. */
  readonly arrivals: readonly { readonly target: string; readonly edge: string }[];
}

/** The first difference between what the run's commits counted and what the flow's code would have counted. */
export function findMisfit(body: FlowBody, { entries, readiness, arrivals }: LiveFlow): ReplayDifference | undefined {
  const recorded = effectiveFlowEntries(entries).filter(isOfNode);
  for (const { command } of recorded)
    if (findRef(body, command) === undefined)
      return differ(
        command,
        `the run has node ${command}, which the flow does not have as a step of its own.`,
        command,
      );
  for (const row of readiness) {
    const found = findOtherCount(body, row);
    if (found !== undefined) return found;
  }
  const ended = new Set(recorded.filter(isNodeEnd).map(({ command }) => command));
  if (readiness.length > 0 || ended.size > 0) ended.add("input");
  return findOtherEdge(body, ended, arrivals);
}

type NodeEntry = DecodedEntry<"NodeCompleted" | "NodeFailed" | "NodeSkipped" | "ChildWorkflowInitiated">;

function isOfNode(entry: DecodedEntry): entry is NodeEntry {
  return isNodeEnd(entry) || isOfType(entry, "ChildWorkflowInitiated");
}

function findOtherCount({ regions }: FlowBody, { node, required, queued }: Readiness): ReplayDifference | undefined {
  const head = regions.get(node);
  if (head === undefined)
    return differ(
      node,
      `values have arrived at node ${node}, which the flow does not have as a step of its own.`,
      node,
    );
  const isBarrier = head.region.head.work.kind === "barrier";
  if (queued !== undefined && !isBarrier)
    return differ(node, `node ${node} spreads a list in this run; in the flow it does not.`, "spread", "no spread");
  if (isBarrier || head.required === required) return undefined;
  return differ(node, `node ${node} waits for ${required} values in this run.`, required, head.required);
}

/** fit.F1 */
function findOtherEdge(
  { regions }: FlowBody,
  ended: ReadonlySet<string>,
  arrivals: LiveFlow["arrivals"],
): ReplayDifference | undefined {
  const known = new Set<string>();
  for (const id of ended)
    for (const { source, target } of regions.get(id)?.region.exits ?? []) known.add(edgeText(source, target));
  const arrived = new Set<string>();
  for (const { edge, target } of arrivals) {
    const text = edgeText(edge, target);
    arrived.add(text);
    const isList = regions.get(target)?.region.head.work.kind === "barrier";
    if (!isList && !known.has(text))
      return differ(target, `node ${target} got the value of ${edge} in this run; in the flow it does not.`, text);
  }
  for (const text of known)
    if (!arrived.has(text)) {
      const [source = "", target = ""] = text.split(ARROW);
      return differ(
        target,
        `node ${target} needs ${source}, whose value the run passed on before: it would never arrive.`,
        undefined,
        text,
      );
    }
  return undefined;
}

const ARROW = " → ";

function edgeText(source: string, target: string): string {
  return `${source}${ARROW}${target}`;
}

/** `actual`: in the journal. `expected`: in the code. */
function differ(where: string, message: string, actual: unknown, expected?: unknown): ReplayDifference {
  return { where, message, expected, actual };
}

/** The routes under which nodes of the flow can wait for a worker. */
export function routesOf({ name, version, nodes }: FlowBody): readonly string[] {
  const routes = new Set([nodeRoute(name, version)]);
  for (const node of nodes.values()) {
    const { label, slotOptions } = node;
    if (slotOptions !== undefined || label !== undefined)
      routes.add(nodeRoute(name, version, slotOptions?.queue.name, label));
    // keys.K1. Where it waits before it is in its queue.
    if (hasKey(node)) routes.add(nodeRoute(name, version, undefined, label));
  }
  return [...routes];
}
