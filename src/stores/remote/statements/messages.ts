// @ts-nocheck
// Statements for the inbox, `once` and the journal of a run.
//
// statements.I1. The inbox of a live run contains its arrivals after `read`, one row each, without gaps: rows that were read are
//   deleted, and the remaining ones are known without a query.

import { equal, inboxFrom, onceOfRun } from "./selections.ts";
import type { RowOf } from "../../rows/tables.ts";
import type { Statement } from "../../rules/statements.ts";
import { change, exists, effect, one, rows, type StatementContext } from "./context.ts";

export function messageStatements({ ws, mode, lock }: StatementContext) {
  const entry = (run: number, seq: number): RowOf<"journal"> | undefined => ws.get("journal", "none", run, seq);

  const inbox = (run: number, after: number): RowOf<"inbox">[] => {
    // statements.I1
    const row = mode === "read" ? undefined : ws.get("runs", lock("runs"), run);
    if (row !== undefined && row.arrivals === Math.max(row.read, after)) return [];
    if (mode !== "claim") return ws.select(inboxFrom(run, after));
    return ws
      .findBy("inbox", ["run"], [run], "none")
      .filter(({ arrival }) => arrival > after)
      .sort((a, b) => a.arrival - b.arrival);
  };

  return {
    insertInbox: effect((type: string, target: string, data: string, run: number) => {
      const row = ws.get("runs", lock("runs"), run);
      if (row !== undefined) ws.insert("inbox", { run, arrival: row.arrivals, type, target, data });
    }),
    inboxAfter: {
      ...rows((run: number, after: number) =>
        inbox(run, after).map(({ arrival, type, target, data }) => ({ arrival, type, target, data })),
      ),
      // Whether a run that ends has unread messages (statements.I1).
      get: (run, after) => {
        const { arrivals = 0, read = 0 } = ws.get("runs", lock("runs"), run as number) ?? {};
        const arrival = Math.max(read, after as number) + 1;
        return arrival <= arrivals ? { arrival } : undefined;
      },
    } satisfies Statement,
    deleteReadInbox: effect((run: number, read: number) => {
      // statements.I1. The run's row is changed already; its original `read` is where the inbox begins.
      const before = ws.original("runs", run)?.read ?? 0;
      for (let arrival = before + 1; arrival <= read; arrival++) ws.deleteBlind("inbox", [run, arrival]);
    }),

    insertDedupKey: change((run: number, target: string, at: number) => {
      if (ws.get("once", "none", run, target) !== undefined) return 0;
      return Number(ws.insert("once", { run, target, at }));
    }),
    deleteDedupKey: effect((run: number, target: string) => ws.deleteBlind("once", [run, target])),
    hasDedupKeys: exists((run: number) => ws.select(onceOfRun(run, 1), 1_000).length > 0),

    insertEntry: effect(
      (
        run: number,
        seq: number,
        type: string,
        command: string,
        data: string,
        at: number,
        mark: number,
        took: number | null,
      ) => void ws.insert("journal", { run, seq, type, command, data, at, mark, took_ms: took }),
    ),
    entry: one((run: number, seq: number) => {
      const row = entry(run, seq);
      return row && { seq, type: row.type, command: row.command, data: row.data, at: row.at, mark: row.mark };
    }),
    entryMark: one((run: number, seq: number) => {
      const row = entry(run, seq);
      return row && { mark: row.mark };
    }),
    entryData: one((run: number, seq: number) => {
      const row = entry(run, seq);
      return row && { data: row.data };
    }),
    entriesAfter: rows((run: number, after: number, limit: number) =>
      ws
        .select({
          kind: "select",
          table: "journal",
          where: [equal("run", run), { column: "seq", is: ">", value: after }],
          order: [["seq", "asc"]],
          ...(limit < 0 ? {} : { limit }),
          lock: "none",
        })
        .map(({ seq, type, command, data, at, mark, took_ms: took }) => [seq, type, command, data, at, mark, took]),
    ),
    setStartTime: effect((at: number, run: number) => ws.updateBlind("journal", [run, 1], { at })),
    rewriteFirstEntry: effect((data: string, at: number, mark: number, run: number) =>
      ws.updateBlind("journal", [run, 1], { data, at, mark }),
    ),
  };
}
