// The nodes of a flow as the engine sees them, and the edges between them.
//
// N1. An edge has one source and one target; per run, one arrival travels along it (F1). Its id names the source, so it is
//     unique among the edges into its target.
// N2. A node inside a branch has an edge from the `when` that guards it, and is skipped with it, whatever else it needs.
// N3. A spread is two nodes: one that makes the items (`name[]`), and one that waits for all of them (`name`).

import type { AnyTask, Definition, LineOptions, Policy } from "../kernel/index.ts";

type Values = Readonly<Record<string, unknown>>;

export type NodeWork =
  | { readonly kind: "input" }
  | { readonly kind: "action"; readonly run: Function; readonly recover: Function | undefined }
  | { readonly kind: "inline"; readonly derive: (given: Values) => unknown }
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
export interface Gate {
  readonly when: string;
  readonly side: boolean;
}

export interface FlowNode {
  readonly id: string;
  readonly work: NodeWork;
  /** In the order written, each once. */
  readonly needs: readonly string[];
  readonly gate: Gate | undefined;
  readonly policy: Policy;
  readonly line: LineOptions | undefined;
  /** Its own; else the flow's holds. */
  readonly label: string | undefined;
}

/** N1. Its id is its source. */
export interface Edge {
  readonly source: string;
  readonly target: string;
  /** Set on the edge of a guard (N2). */
  readonly side: boolean | undefined;
}

/** Into a node, in the order of its needs; a node that needs nothing waits for the input. */
export function edgesInto({ id, needs, gate, work }: FlowNode): readonly Edge[] {
  if (work.kind === "input" || work.kind === "barrier") return [];
  const sources = needs.length === 0 && gate === undefined ? ["input"] : needs;
  const edges: Edge[] = sources.map((source) => ({ source, target: id, side: undefined }));
  return gate === undefined ? edges : [...edges, { source: gate.when, target: id, side: gate.side }];
}

export const SPREAD_SUFFIX = "[]";
