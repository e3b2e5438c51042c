// Evaluate: derives the nodes of a region in memory from the value of its head (seed 001, "Execute Inline Subgraph").
//
// flow.E1. Pure: the same value gives the same result, in the run and in every replay. No store, no clock, no context.
// flow.E2. A node runs if its guard is on its side and at least one of its needs has a value; otherwise it is skipped, and so
//   are nodes that need nothing else (rules.F3). A skipped need reads as undefined. The output always runs.
// flow.E3. A function that throws ends the evaluation: the run fails with that node, and nothing of the region counts.
// flow.E4. A kept value is encoded right after it is derived, and later nodes see the decoded text. So changes that a
//   function makes to it later do not reach the journal.

import { decode, invariant, readableThrown } from "../base/index.ts";
import { requireSynchronous } from "./require-synchronous.ts";
import type { FlowNode } from "./node.ts";
import type { Region } from "./regions.ts";

/** The value of a skipped node. */
export const SKIPPED: unique symbol = Symbol("skipped");
export type ValuesByNode = ReadonlyMap<string, unknown>;

export interface PlannedArrival {
  readonly target: string;
  readonly edge: string;
  readonly isSkip: boolean;
}

export type Evaluation =
  | {
      readonly status: "done";
      readonly arrivals: readonly PlannedArrival[];
      /** regions.R3. By node, encoded; without skipped nodes. */
      readonly kept: ReadonlyMap<string, string>;
      /** Derived nodes that were skipped. */
      readonly skipped: readonly string[];
      /** Set when the output was reached. */
      readonly output: { readonly value: unknown } | undefined;
    }
  | { readonly status: "threw"; readonly node: string; readonly error: unknown };

/** Encodes a kept value; throws if it cannot be stored. */
export type EncodeKept = (node: string, value: unknown) => string;

/** The values that a node needs, or SKIPPED (flow.E2). */
export function neededValues(node: FlowNode, known: ValuesByNode): Readonly<Record<string, unknown>> | typeof SKIPPED {
  const { guard, needs } = node;
  if (guard !== undefined && known.get(guard.when) !== guard.side) return SKIPPED;
  const given: Record<string, unknown> = {};
  // A run must end, so the output is derived even without any value.
  let isReal = needs.length === 0 || node.work.kind === "output";
  for (const need of needs) {
    const value = known.get(need);
    if (value === SKIPPED) given[need] = undefined;
    else {
      given[need] = value;
      isReal = true;
    }
  }
  return isReal ? given : SKIPPED;
}

/** `value`: of the region's head, SKIPPED if the head was skipped. */
export function evaluate({ head, inline, exits, kept: keeps }: Region, value: unknown, keep: EncodeKept): Evaluation {
  const known = new Map<string, unknown>([[head.id, value]]);
  const kept = new Map<string, string>();
  let output: { readonly value: unknown } | undefined;
  if (head.work.kind === "output" && value !== SKIPPED) output = { value };
  for (const node of inline) {
    invariant(!known.has(node.id), "A node of a region is derived once.");
    const given = neededValues(node, known);
    if (given === SKIPPED) {
      known.set(node.id, SKIPPED);
      continue;
    }
    try {
      let derived = derive(node, given);
      if (node.work.kind === "output") output = { value: derived };
      if (keeps.includes(node.id)) {
        const text = keep(node.id, derived);
        kept.set(node.id, text);
        // flow.E4
        if (typeof derived === "object") derived = decode(text);
      }
      known.set(node.id, derived);
    } catch (error) {
      return { status: "threw", node: node.id, error: readableThrown(error) };
    }
  }
  return {
    status: "done",
    arrivals: exits.map(({ source, target, side }) => ({
      target,
      edge: source,
      isSkip: isSkip(known.get(source), side),
    })),
    kept,
    skipped: inline.flatMap(({ id }) => (known.get(id) === SKIPPED ? [id] : [])),
    output,
  };
}

/** Calls a node's function in memory: for its value, the result of its test, its items, or the input of its call. */
export function derive({ id, work }: FlowNode, given: Readonly<Record<string, unknown>>): unknown {
  switch (work.kind) {
    case "inline":
    case "output":
      return requireSynchronous(id, work.derive(given));
    case "when":
      return Boolean(requireSynchronous(id, work.test(given)));
    case "spread":
      return requireSynchronous(id, work.items(given));
    case "call":
      return requireSynchronous(id, work.input(given));
    default:
      throw new TypeError(`${id} is not derived.`);
  }
}

/** A guard that was skipped, or is on the other side, skips its nodes. */
function isSkip(value: unknown, side: boolean | undefined): boolean {
  return side === undefined ? value === SKIPPED : value !== side;
}
