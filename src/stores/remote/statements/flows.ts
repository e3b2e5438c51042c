// @ts-nocheck
// Statements for nodes of flows: their arrivals and readiness.

import { compareValues } from "../evaluate.ts";
import { equal } from "./selections.ts";
import type { RowOf } from "../../rows/tables.ts";
import { change, exists, effect, one, rows, type StatementContext } from "./context.ts";

export function flowStatements({ ws }: StatementContext) {
  const inputs = (run: number, targets: readonly string[]): readonly unknown[] => {
    const arrivals = ws
      .select({
        kind: "select",
        table: "arrivals",
        where: [equal("run", run), { column: "target", is: "in", values: targets }],
        lock: "none",
      })
      .sort(
        (a, b) => compareValues(a.target, b.target) || compareValues(a.edge, b.edge) || compareValues(a.idx, b.idx),
      );
    ws.require(() =>
      ws.prefetchRows(
        "journal",
        "none",
        arrivals.map(({ seq }) => [run, seq]),
      ),
    );
    return arrivals.flatMap(({ target, edge, idx, kind, seq }) => {
      const entry = ws.get("journal", "none", run, seq);
      return entry === undefined ? [] : [[target, edge, idx, kind, seq, entry.data]];
    });
  };

  return {
    hasArrived: exists(
      (run: number, target: string, edge: string, idx: number) =>
        ws.get("arrivals", "none", run, target, edge, idx) !== undefined,
    ),
    insertArrival: change((run: number, target: string, edge: string, idx: number, kind: number, seq: number) => {
      if (ws.get("arrivals", "none", run, target, edge, idx) !== undefined) return 0;
      return Number(ws.insert("arrivals", { run, target, edge, idx, kind, seq }));
    }),
    nodeReadiness: one((run: number, node: string) => {
      const row = ws.get("readiness", "none", run, node);
      return row && [row.required, row.completed, row.queued, row.window, row.first_seq, row.per_entry];
    }),
    insertReadiness: effect(
      (
        run: number,
        node: string,
        required: number,
        completed: number,
        queued: number | null,
        window: number | null,
        firstSeq: number | null,
        perEntry: number | null,
      ) => {
        const counted = { required, completed, queued, window, first_seq: firstSeq, per_entry: perEntry };
        ws.insert("readiness", { run, node, ...counted });
      },
    ),
    updateReadiness: effect((completed: number, queued: number | null, run: number, node: string) => {
      const row = ws.get("readiness", "none", run, node);
      if (row !== undefined) ws.update("readiness", row, { completed, queued });
    }),

    inputsOfNode: rows((run: number, target: string) => inputs(run, [target])),
    inputsOfNodes: rows((run: number, targets: string) => inputs(run, [...new Set(JSON.parse(targets) as string[])])),
    readinessOfRun: rows((run: number) =>
      ws
        .select({
          kind: "select",
          table: "readiness",
          where: [equal("run", run)],
          order: [["node", "asc"]],
          lock: "none",
        })
        .map(({ node, required, completed, queued }: RowOf<"readiness">) => ({ node, required, completed, queued })),
    ),
  };
}
