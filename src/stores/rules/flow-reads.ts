// Flow reads: the inputs of nodes and their readiness.

import type { ArrivalKind, InputsRequest, NodeInput, Readiness, RunNumber } from "../../kernel/index.ts";
import { invariant } from "../../base/index.ts";
import type { Rows } from "../rows/rows.ts";

/** A kind's index is its number in the column `kind`, and never changes. */
export const ARRIVAL_KINDS: readonly ArrivalKind[] = ["value", "skip", "failure"];

export function arrivalKindOf(number: number): ArrivalKind {
  const kind = ARRIVAL_KINDS[number];
  invariant(kind !== undefined, "An arrival must have a known kind.");
  return kind;
}

const ARRIVAL = ["target", "edge", "idx", "kind", "seq"] as const;
const DATA = ["data"] as const;

/** rules.F7. The inputs of each request: by target, then by edge and index. */
export function readInputs(rows: Rows, asked: readonly InputsRequest[]): readonly (readonly NodeInput[])[] {
  const arrivals = asked.map(({ run, targets }) => {
    const names = targets.length === 1 ? targets : [...new Set(targets)];
    return names.map((target) => rows.select("arrivals", [run, target], ARRIVAL));
  });
  return asked.map(({ run }, request) => {
    const found = (arrivals[request] ?? []).toSorted(byTarget).flat();
    // Arrivals often refer to the same entry.
    const entries = new Map<number, string | undefined>();
    for (const { seq } of found) if (!entries.has(seq)) entries.set(seq, rows.get("journal", [run, seq], DATA)?.data);
    return found.flatMap(({ target, edge, idx, kind, seq }): NodeInput[] => {
      const data = entries.get(seq);
      return data === undefined ? [] : [{ target, edge, index: idx, kind: arrivalKindOf(kind), seq, data }];
    });
  });
}

type Arrivals = readonly { readonly target: string }[];

function byTarget([a]: Arrivals, [b]: Arrivals): number {
  if (a === undefined || b === undefined) return 0;
  return Buffer.compare(Buffer.from(a.target), Buffer.from(b.target));
}

const READINESS = ["node", "required", "completed", "queued"] as const;

export function readReadiness(rows: Rows, run: RunNumber): readonly Readiness[] {
  return rows.select("readiness", [run], READINESS).map(({ node, required, completed, queued }) => ({
    node,
    required,
    completed,
    queued: queued ?? undefined,
  }));
}
