// Evaluate: what follows from a head's value, in memory (seed 001, "Execute Inline Subgraph").
//
// EV1. Pure: the same value gives the same plan, here and in every replay. No store, no clock, no context.
// EV2. A node runs when its guard holds and at least one of its needs has a value; else it is skipped, and so is what only
//      needs it (F3). Needs that were skipped are undefined. The output always runs.
// EV3. A function that throws ends the evaluation: the run fails with that node, and nothing of the region counts.
// EV4. A value that is kept is encoded where it is made, and what follows sees it as it will be read: whatever is done to it
//      later does not get into the journal.

import { readableThrown, decode } from "../base/index.ts";
import { requireSynchronous } from "./require-synchronous.ts";
import type { FlowNode } from "./node.ts";
import type { Region } from "./regions.ts";

/** Stands for the value of a node that was skipped. */
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
      /** RG3. By node, encoded; without those that were skipped. */
      readonly kept: ReadonlyMap<string, string>;
      /** Nodes behind the head that were skipped. */
      readonly skipped: readonly string[];
      /** Set when the output was reached. */
      readonly output: { readonly value: unknown } | undefined;
    }
  | { readonly status: "threw"; readonly node: string; readonly error: unknown };

/** The text of a value that is kept; throws where it cannot be. */
export type EncodeKept = (node: string, value: unknown) => string;

/** What a node is given, or that it is skipped (EV2). */
export function neededValues(node: FlowNode, known: ValuesByNode): Readonly<Record<string, unknown>> | typeof SKIPPED {
  const { guard, needs } = node;
  if (guard !== undefined && known.get(guard.when) !== guard.side) return SKIPPED;
  const given: Record<string, unknown> = {};
  // A run must end: the output is derived from whatever there is.
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

/** `value`: of the region's head, SKIPPED when it was. */
export function evaluate({ head, inline, exits, kept: keeps }: Region, value: unknown, keep: EncodeKept): Evaluation {
  const known = new Map<string, unknown>([[head.id, value]]);
  const kept = new Map<string, string>();
  let output: { readonly value: unknown } | undefined;
  if (head.work.kind === "output" && value !== SKIPPED) output = { value };
  for (const node of inline) {
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
        // EV4
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

/** Calls a node's function in memory: for its value, whether its test holds, its items, or what it calls with. */
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

/** A guard that was skipped, or holds for the other side, lets nothing through. */
function isSkip(value: unknown, side: boolean | undefined): boolean {
  return side === undefined ? value === SKIPPED : value !== side;
}
