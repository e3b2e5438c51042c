// Flow reads: the inputs of nodes and their readiness.

import type { ArrivalKind, InputsRequest, NodeInput, Readiness, RunNumber } from "../../kernel/index.ts";
import type { Statements } from "./statements.ts";

/** A kind's index is its number in the column `kind`, and never changes. */
export const ARRIVAL_KINDS: readonly ArrivalKind[] = ["value", "skip", "failure"];

type InputRow = [target: string, edge: string, index: number, kind: number, seq: number, data: string];

/** rules.F7. One query per request. A single target has its own statement, without a JSON list for SQLite to unpack. */
export function readInputs(sql: Statements, asked: readonly InputsRequest[]): readonly (readonly NodeInput[])[] {
  return asked.map(({ run, targets }) => {
    const rows =
      targets.length === 1
        ? sql.inputsOfNode.all(run, targets[0] as string)
        : sql.inputsOfNodes.all(run, JSON.stringify(targets));
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
  const rows = sql.readinessOfRun.all(run) as unknown as (Readiness & { queued: number | null })[];
  return rows.map(({ node, required, completed, queued }) => ({
    node,
    required,
    completed,
    queued: queued ?? undefined,
  }));
}
