// @ts-nocheck
// Statements for checkpoints and forks.

import { atMost, equal, some } from "./selections.ts";
import type { Condition, Select } from "../query.ts";
import type { RowOf } from "../../rows/tables.ts";
import { change, effect, one, rows, type StatementContext } from "./context.ts";

type Row = RowOf<"checkpoints">;

export function checkpointStatements({ ws, lock }: StatementContext) {
  const kept = (row: Row | undefined): object | undefined => row && { run: row.run, step: row.step, key: row.key };
  const byKey = (key: string): Row | undefined => ws.findBy("checkpoints", ["key"], [key], "none")[0];
  const newest = (run: number, step: number, ...also: readonly Condition[]): Row | undefined =>
    ws.select(stepsOf(run, [...also, { column: "step", is: "<=", value: step }], "desc", 1))[0];

  return {
    checkpointAt: one((run: number, step: number) => kept(ws.get("checkpoints", "none", run, step))),
    checkpointByKey: one((key: string) => kept(byKey(key))),
    insertCheckpoint: effect(
      (
        run: number,
        step: number,
        seq: number,
        chain: string,
        key: string,
        label: string | null,
        state: string | null,
      ) => void ws.insert("checkpoints", { run, step, seq, chain, key, label, state }),
    ),
    insertFencedCheckpoint: change(
      (
        run: number,
        step: number,
        seq: number,
        chain: string,
        key: string,
        label: string | null,
        state: string | null,
        token: string,
        head: number,
      ) => {
        const row = ws.get("runs", lock("runs"), run);
        if (row?.turn_token !== token || row.head !== head) return 0;
        if (ws.get("checkpoints", "none", run, step) !== undefined || byKey(key) !== undefined) return 0;
        return Number(ws.insert("checkpoints", { run, step, seq, chain, key, label, state }));
      },
    ),
    deleteCheckpoint: effect((run: number, step: number) => ws.deleteBlind("checkpoints", [run, step])),
    checkpointsAfter: rows((run: number, after: number, limit: number) =>
      ws.select(stepsOf(run, [{ column: "step", is: ">", value: after }], "asc", limit)).map(withoutState),
    ),
    checkpointUpTo: one((run: number, step: number) => withoutState(newest(run, step))),
    wholeCheckpoint: one((run: number, step: number) => {
      const row = newest(run, step, some("state"));
      return row && { ...withoutState(row), state: row.state };
    }),
    labeledCheckpoint: one((run: number, label: string, step: number) =>
      withoutState(newest(run, step, equal("label", label))),
    ),
    stepsAfter: rows((run: number, after: number, upTo: number, limit: number) => {
      const between: Condition[] = [
        { column: "step", is: ">", value: after },
        { column: "step", is: "<=", value: upTo },
      ];
      const steps = ws.select(stepsOf(run, between, "asc", limit));
      ws.require(() =>
        ws.prefetchRows(
          "journal",
          "none",
          steps.map(({ seq }) => [run, seq]),
        ),
      );
      return steps.flatMap((step) => {
        const entry = ws.get("journal", "none", run, step.seq);
        if (entry === undefined) return [];
        const { seq, type, command, data, at, mark, took_ms: took } = entry;
        return [[seq, type, command, data, at, mark, took]];
      });
    }),

    insertFork: effect((run: number, origin: number, step: number) => void ws.insert("forks", { run, origin, step })),
    deleteFork: effect((run: number) => ws.deleteBlind("forks", [run])),
  };
}

function stepsOf(
  run: number,
  where: readonly Condition[],
  direction: "asc" | "desc",
  limit: number,
): Select<"checkpoints"> {
  return {
    kind: "select",
    table: "checkpoints",
    where: [equal("run", run), ...where],
    order: [["step", direction]],
    ...atMost(limit),
    lock: "none",
  };
}

function withoutState(row: Row | undefined): object | undefined {
  if (row === undefined) return undefined;
  const { step, seq, chain, key, label } = row;
  return { step, seq, chain, key, label, state: null };
}
