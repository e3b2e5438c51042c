// The nodes of a flow as the engine sees them, and the edges between them.
//
// N1. An edge has one source and one target; per run, one arrival travels along it (F1). Its id names the source, so it is
//     unique among the edges into its target.
// N2. A node inside a branch has an edge from the `when` that guards it, and is skipped with it, whatever else it needs.
// N3. A spread is two nodes: one that makes the items (`name[]`), and one that waits for all of them (`name`).

import type { AnyTask, Definition, QueueSlotOptions, Policy } from "../kernel/index.ts";

type Values = Readonly<Record<string, unknown>>;

export type NodeWork =
  | { readonly kind: "input" }
  | {
      readonly kind: "action";
      readonly run: Function;
      readonly recover: Function | undefined;
      /** One of the actions of a `parallel`. */
      readonly isPart: boolean;
    }
  | {
      readonly kind: "inline";
      readonly derive: (given: Values) => unknown;
      /** Collects the parts of a `parallel`. */
      readonly isParallel: boolean;
    }
  | { readonly kind: "when"; readonly test: (given: Values) => unknown }
  | { readonly kind: "call"; readonly definition: Definition | AnyTask; readonly input: (given: Values) => unknown }
  | {
      readonly kind: "spread";
      readonly items: (given: Values) => unknown;
      readonly run: Function | AnyTask | Definition;
      /** How many items are in the queue at once. */
      readonly window: number | undefined;
      readonly settle: boolean;
    }
  /** Waits for the items of a spread. */
  | { readonly kind: "barrier"; readonly spread: string; readonly settle: boolean }
  | { readonly kind: "output"; readonly derive: (given: Values) => unknown };

/** Which side of a `when` a node is on. */
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
  /** In the order written, each once. */
  readonly needs: readonly string[];
  readonly guard: BranchGuard | undefined;
  readonly policy: Policy;
  readonly slotOptions: QueueSlotOptions | undefined;
  /** Its own; else the flow's holds. */
  readonly label: string | undefined;
}

/** N1. Its id is its source. */
export interface FlowEdge {
  readonly source: string;
  readonly target: string;
  /** Set on the edge of a guard (N2). */
  readonly side: boolean | undefined;
}

/** Into a node, in the order of its needs; a node that needs nothing waits for the input. */
export function edgesInto({ id, needs, guard, work }: FlowNode): readonly FlowEdge[] {
  if (work.kind === "input" || work.kind === "barrier") return [];
  const sources = needs.length === 0 && guard === undefined ? ["input"] : needs;
  const edges: FlowEdge[] = sources.map((source) => ({ source, target: id, side: undefined }));
  return guard === undefined ? edges : [...edges, { source: guard.when, target: id, side: guard.side }];
}

export const SPREAD_SUFFIX = "[]";
