// Node: the nodes of a flow and the edges between them, as the engine uses them.
//
// node.N1. An edge has one source and one target, and carries one arrival per run (rules.F1). Its id is its source, which is
//   unique among the edges into its target.
// node.N2. A node in a branch has an edge from the `when` that guards it, and is skipped with it whatever else it needs.
// node.N3. A spread is two nodes: one makes the items (`name[]`), and a barrier waits for all of them (`name`).

import type { AnyTask, Definition, QueueSlotOptions, Policy, TaskCost } from "../kernel/index.ts";

type NodeValues = Readonly<Record<string, unknown>>;

export type NodeWork =
  | { readonly kind: "input" }
  | {
      readonly kind: "action";
      readonly run: Function;
      readonly recover: Function | undefined;
      readonly recoversTimeouts: boolean;
      /** One of the actions of a `parallel`. */
      readonly isPart: boolean;
      /** The version of its function, if its value depends on its needs alone. */
      readonly pure?: string | undefined;
      readonly cost?: TaskCost | undefined;
    }
  | {
      readonly kind: "inline";
      readonly derive: (given: NodeValues) => unknown;
      /** Collects the parts of a `parallel`. */
      readonly isParallel: boolean;
    }
  | { readonly kind: "when"; readonly test: (given: NodeValues) => unknown }
  | {
      readonly kind: "call";
      readonly definition: Definition | AnyTask;
      readonly input: (given: NodeValues) => unknown;
      readonly cost?: TaskCost | undefined;
    }
  | {
      readonly kind: "spread";
      readonly items: (given: NodeValues) => unknown;
      readonly run: Function | AnyTask | Definition;
      /** How many items are queued at once. */
      readonly window: number | undefined;
      readonly settle: boolean;
      /** Of one item. */
      readonly cost?: TaskCost | undefined;
    }
  /** Waits for the items of a spread. */
  | { readonly kind: "barrier"; readonly spread: string; readonly settle: boolean }
  | { readonly kind: "output"; readonly derive: (given: NodeValues) => unknown };

/** The `when` that guards a node, and the node's side of it. */
export interface BranchGuard {
  /** The id of the `when`. */
  readonly when: string;
  /** Its name. */
  readonly name: string;
  readonly side: boolean;
}

export interface FlowNode {
  readonly id: string;
  /** As the flow's author wrote it; a spread and its barrier share one. */
  readonly name: string;
  readonly work: NodeWork;
  /** In written order, each once. */
  readonly needs: readonly string[];
  readonly guard: BranchGuard | undefined;
  readonly policy: Policy;
  readonly slotOptions: QueueSlotOptions | undefined;
  /** The node's own label; without one, the flow's label applies. */
  readonly label: string | undefined;
}

/** node.N1 */
export interface FlowEdge {
  readonly source: string;
  readonly target: string;
  /** Set on the edge of a guard (node.N2). */
  readonly side: boolean | undefined;
}

/** The edges into a node, in the order of its needs. A node without needs waits for the input. */
export function edgesInto({ id, needs, guard, work }: FlowNode): readonly FlowEdge[] {
  if (work.kind === "input" || work.kind === "barrier") return [];
  const sources = needs.length === 0 && guard === undefined ? ["input"] : needs;
  const edges: FlowEdge[] = sources.map((source) => ({ source, target: id, side: undefined }));
  return guard === undefined ? edges : [...edges, { source: guard.when, target: id, side: guard.side }];
}

export { SPREAD_SUFFIX } from "../kernel/index.ts";
