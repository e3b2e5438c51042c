// Flow reads: what has arrived for nodes, and where they stand.

import type { ArrivalKind, InputsAsked, NodeInput, Readiness, RunNumber } from "../../kernel/index.ts";
import type { Statements } from "./statements.ts";

/** By the number on their row; never renumbered. */
export const ARRIVAL_KINDS: readonly ArrivalKind[] = ["value", "skip", "failure"];

type InputRow = [target: string, edge: string, index: number, kind: number, seq: number, data: string];

/** F7. One query each; for a single target without the list that SQLite would unpack first. */
export function readInputs(sql: Statements, asked: readonly InputsAsked[]): readonly (readonly NodeInput[])[] {
  return asked.map(({ run, targets }) => {
    const rows =
      targets.length === 1
        ? sql.inputsOf.all(run, targets[0] as string)
        : sql.inputsOfMany.all(run, JSON.stringify(targets));
    return (rows as unknown as InputRow[]).map(([target, edge, index, kind, seq, data]) => ({
      target,
      edge,
      index,
      kind: ARRIVAL_KINDS[kind] as ArrivalKind,
      seq,
      data,
    }));
  });
}

export function readReadiness(sql: Statements, run: RunNumber): readonly Readiness[] {
  const rows = sql.readinessOf.all(run) as unknown as (Readiness & { queued: number | null })[];
  return rows.map(({ node, required, completed, queued }) => ({
    node,
    required,
    completed,
    queued: queued ?? undefined,
  }));
}
