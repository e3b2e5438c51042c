// Describe flow: a flow as plain data, for diagrams and tools. It runs no user code.

import { describeFunction, toMs } from "../base/index.ts";
import { isTask, type QueueSlotOptions, type Policy } from "../kernel/index.ts";
import { flowBody, OUTPUT, type FlowBody } from "./definition.ts";
import { edgesInto, type FlowNode } from "./node.ts";

/** The kind of a flow's node; `part` is one of the actions of a `parallel`. */
export type FlowNodeKind = "action" | "inline" | "call" | "spread" | "parallel" | "part" | "when";

/** A node, as `describeFlow` returns it. */
export interface FlowNodeDescription {
  /** The id in the journal: `fetch`, `both.left` for a part, `large?` for a when. */
  readonly id: string;
  readonly name: string;
  readonly kind: FlowNodeKind;
  /** The names it needs, in written order. */
  readonly needs: readonly string[];
  /** The when that guards it, and its side; null outside of branches. */
  readonly branch: { readonly when: string; readonly side: boolean } | null;
  /** The definition or task of a call, or of a spread that runs one per item. */
  readonly calls: { readonly kind: string; readonly name: string } | null;
  /** For a when and a spread: the name of its function; without a name, the source text if it is short. */
  readonly by: string | null;
  /** 1 without retries; null without a limit. */
  readonly maxAttempts: number | null;
  readonly timeoutMs: number | null;
  /** For a spread: how many items are queued at once; null by default. */
  readonly concurrency: number | null;
  /** For a spread: a failed item becomes an entry of its list. */
  readonly settle: boolean;
  /** For an action: it has a `catch`. */
  readonly catches: boolean;
  readonly queue: string | null;
  /** The node's own label. */
  readonly label: string | null;
}

/** An edge between two nodes, by their `id`, as `describeFlow` returns it. */
export interface FlowEdgeDescription {
  /** A node, or null for the input. */
  readonly from: string | null;
  /** A node, or null for the output. */
  readonly to: string | null;
  /** `branch`: from a when to a node that runs on its `side` only. */
  readonly kind: "value" | "branch";
  readonly side: boolean | null;
}

/** A flow as plain data, as `describeFlow` returns it. */
export interface FlowDescription {
  readonly name: string;
  readonly version: number;
  readonly deadlineMs: number | null;
  /** The label of the workers that run it. */
  readonly label: string | null;
  /** In written order. */
  readonly nodes: readonly FlowNodeDescription[];
  readonly edges: readonly FlowEdgeDescription[];
}

/**
 * Describes a flow as plain data: its nodes in written order, and the names each of them needs.
 *
 * @example
 * ```ts
 * import { flow, typed } from "reprise";
 * import { describeFlow } from "reprise/describe";
 * const total = flow("total", { input: typed<readonly number[]>() })
 *   .spread("taxed", ["input"], ({ input }) => input, async (_ctx, price) => price * 1.2)
 *   .output(["taxed"], ({ taxed }) => taxed);
 * const kinds = describeFlow(total).nodes.map(({ name, kind }) => `${name}: ${kind}`);
 * ```
 */
export function describeFlow(definition: { readonly kind: "flow"; readonly name: string }): FlowDescription {
  return describeFlowBody(flowBody(definition));
}

export function describeFlowBody({ name, version, deadlineMs, label, nodes }: FlowBody): FlowDescription {
  const shown = [...nodes.values()].filter(isShown);
  return {
    name,
    version,
    deadlineMs: deadlineMs ?? null,
    label: label ?? null,
    nodes: shown.filter(({ id }) => id !== OUTPUT).map(nodeOf),
    edges: shown.flatMap((node) =>
      edgesInto(node).map(({ source, side }) => ({
        from: source === "input" ? null : source,
        to: node.id === OUTPUT ? null : idOf(node),
        kind: side === undefined ? ("value" as const) : ("branch" as const),
        side: side ?? null,
      })),
    ),
  };
}

/** A spread and its barrier are shown as one node. */
function isShown({ work }: FlowNode): boolean {
  return work.kind !== "input" && work.kind !== "barrier";
}

function idOf({ id, name, work }: FlowNode): string {
  return work.kind === "spread" ? name : id;
}

function nodeOf(node: FlowNode): FlowNodeDescription {
  const { work, needs, guard, policy, slotOptions } = node;
  const called = work.kind === "call" ? work.definition : work.kind === "spread" ? work.run : undefined;
  return {
    id: idOf(node),
    name: node.name,
    kind: kindOf(node),
    needs,
    branch: guard === undefined ? null : { when: guard.name, side: guard.side },
    calls: called === undefined || typeof called === "function" ? null : calledOf(called),
    by:
      work.kind === "when" ? describeFunction(work.test) : work.kind === "spread" ? describeFunction(work.items) : null,
    ...optionsOf(policy, slotOptions),
    label: node.label ?? null,
    concurrency: work.kind === "spread" ? (work.window ?? null) : null,
    settle: work.kind === "spread" && work.settle,
    catches: work.kind === "action" && work.recover !== undefined,
  };
}

function calledOf(called: { readonly kind?: string; readonly name: string }): { kind: string; name: string } {
  return { kind: isTask(called) ? "task" : (called.kind ?? "workflow"), name: called.name };
}

function kindOf({ work }: FlowNode): FlowNodeKind {
  if (work.kind === "action") return work.isPart ? "part" : "action";
  if (work.kind === "inline") return work.isParallel ? "parallel" : "inline";
  return work.kind as "call" | "spread" | "when";
}

function optionsOf(
  { retry, timeout }: Policy,
  slotOptions: QueueSlotOptions | undefined,
): Pick<FlowNodeDescription, "maxAttempts" | "timeoutMs" | "queue"> {
  return {
    maxAttempts: retry === undefined ? 1 : Number.isFinite(retry.maxAttempts) ? retry.maxAttempts : null,
    timeoutMs: timeout === undefined ? null : toMs(timeout),
    queue: slotOptions?.queue.name ?? null,
  };
}
