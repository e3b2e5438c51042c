// @ts-nocheck
// Statements that delete the rows of ended runs, some at a time.
//
// statements.S1. Rows that are numbered without gaps, and may be large, are deleted by number, without reading them.

import { compareValues } from "../evaluate.ts";
import type { Count, Lock, Select } from "../query.ts";
import { equal, itemsOfRun, onceOfRun, some } from "./selections.ts";
import type { RowOf, TableName } from "../../rows/tables.ts";
import { change, exists, effect, one, type AccessMode, type StatementContext } from "./context.ts";
import type { WorkingSet } from "../working-set.ts";

/** As SWEEP_LIMIT of rules/sweep.ts: rows that are deleted together are loaded together. */
const AT_ONCE = 1_000;
const LEFTOVERS_AHEAD = 100;

export function LEFTOVERS(mode: AccessMode): Select<"leftovers"> {
  return {
    kind: "select",
    table: "leftovers",
    where: [some("run")],
    order: [["run", "asc"]],
    limit: 1,
    lock: mode === "write" ? "skip" : "none",
  };
}

/** Locks the runs of all loaded leftovers before their rows are read. */
export function prefetchRunsOfLeftovers(ws: WorkingSet, mode: AccessMode, lock: Lock): void {
  ws.prefetchRows(
    "runs",
    lock,
    leftoversAhead(ws, mode).map(({ run }) => [run]),
  );
}

function leftoversAhead(ws: WorkingSet, mode: AccessMode): readonly RowOf<"leftovers">[] {
  return ws.loaded(LEFTOVERS(mode)).slice(0, LEFTOVERS_AHEAD);
}

/** Expired deduplication ids of messages. */
export function oldIds(mode: AccessMode, before: number, limit: number): Select<"once"> {
  return {
    kind: "select",
    table: "once",
    where: [
      { column: "at", is: ">", value: 0, fixed: true },
      { column: "at", is: "<", value: before },
    ],
    order: [
      ["at", "asc"],
      ["run", "asc"],
      ["target", "asc"],
    ],
    limit,
    lock: mode === "write" ? "skip" : "none",
  };
}

export function sweepStatements({ ws, mode, lock }: StatementContext) {
  const inOrder = <T extends TableName>(table: T, run: number, columns: readonly string[]): Select<T> => ({
    kind: "select",
    table,
    where: [equal("run", run)],
    order: columns.map((column) => [column, "asc"]),
    limit: AT_ONCE,
    lock: "none",
  });
  const clear = <T extends TableName>(table: T, query: Select<T>, limit: number): number => {
    const found = ws.select({ ...query, limit }, limit);
    for (const row of found) ws.remove(table, row);
    return found.length;
  };

  /** statements.S1 */
  const numbered = (table: "inbox" | "journal", run: number, column: string): Count => ({
    kind: "count",
    table,
    where: [equal("run", run)],
    least: column,
    most: column,
  });
  const clearNumbered = (
    table: TableName,
    keyOf: (at: number) => readonly (number | string)[],
    from: number,
    to: number,
    limit: number,
  ): number => {
    let count = 0;
    for (let at = from; at <= to && count < limit; at++) {
      if (ws.isGone(table, ...keyOf(at))) continue;
      ws.deleteBlind(table, keyOf(at));
      count += 1;
    }
    return count;
  };

  const stepsOf = (run: number) =>
    ({ kind: "distinct", table: "checkpoints", columns: ["step"], where: [equal("run", run)] }) as const;
  const streamsOf = (run: number) =>
    ({
      kind: "count",
      table: "chunks",
      where: [equal("run", run)],
      by: ["stream"],
      least: "position",
      most: "position",
    }) as const;
  const emittedOf = (run: number): Select<"emitted"> => inOrder("emitted", run, ["stream"]);
  const arrivalsOf = (run: number): Select<"arrivals"> => inOrder("arrivals", run, ["target", "edge", "idx"]);
  const readinessOf = (run: number): Select<"readiness"> => inOrder("readiness", run, ["node"]);

  /** Prefetches everything that the sweep of a run deletes. */
  const prefetchLeftover = (run: number, isKept: boolean): void => {
    ws.prefetch(itemsOfRun(lock("queue"), run, AT_ONCE));
    ws.prefetch(numbered("inbox", run, "arrival"));
    ws.prefetch(onceOfRun(run, AT_ONCE));
    if (isKept) return;
    ws.prefetch(numbered("journal", run, "seq"));
    ws.prefetch(stepsOf(run));
    ws.prefetch(streamsOf(run));
    ws.prefetch(emittedOf(run));
    ws.prefetch(arrivalsOf(run));
    ws.prefetch(readinessOf(run));
  };

  return {
    insertLeftover: effect((run: number) => {
      if (ws.get("leftovers", lock("leftovers"), run) === undefined) ws.insert("leftovers", { run });
    }),
    deleteLeftover: effect((run: number) => ws.deleteBlind("leftovers", [run])),
    leftover: one(() => {
      const [first] = ws.select(LEFTOVERS(mode), LEFTOVERS_AHEAD);
      if (first === undefined) return undefined;
      ws.require(() => prefetchRunsOfLeftovers(ws, mode, lock("runs")));
      const statusOf = (run: number): string | undefined => ws.get("runs", lock("runs"), run)?.status;
      ws.require(() => {
        if (mode === "write")
          for (const { run } of leftoversAhead(ws, mode)) prefetchLeftover(run, statusOf(run) !== undefined);
      });
      const status = statusOf(first.run);
      return { run: first.run, kept: Number(status !== undefined), failed: Number(status === "failed") };
    }),

    clearQueue: change((run: number, limit: number) => clear("queue", itemsOfRun(lock("queue"), run, AT_ONCE), limit)),
    clearInbox: change((run: number, limit: number) => {
      const keyOf = (arrival: number): readonly number[] => [run, arrival];
      // statements.I1
      const row = ws.get("runs", lock("runs"), run);
      if (row !== undefined && (ws.original("runs", run)?.ended_at ?? null) === null)
        return clearNumbered("inbox", keyOf, row.read + 1, row.arrivals, limit);
      const [counted] = ws.counts(numbered("inbox", run, "arrival"));
      return clearNumbered("inbox", keyOf, ...rangeOf(counted!), limit);
    }),
    clearDedupKeys: change((run: number, limit: number) => clear("once", onceOfRun(run, AT_ONCE), limit)),
    clearJournal: change((run: number, limit: number) => {
      const [counted] = ws.counts(numbered("journal", run, "seq"));
      return clearNumbered("journal", (seq) => [run, seq], ...rangeOf(counted!), limit);
    }),
    clearChunks: change((run: number, limit: number) => {
      let count = 0;
      const streams = [...ws.counts(streamsOf(run))].sort((a, b) =>
        compareValues(a["stream"] as string, b["stream"] as string),
      );
      for (const counted of streams) {
        const keyOf = (at: number): readonly (number | string)[] => [run, counted["stream"] as string, at];
        count += clearNumbered("chunks", keyOf, ...rangeOf(counted), limit - count);
      }
      return count;
    }),
    clearCheckpoints: change((run: number, limit: number) => {
      const steps = ws.counts(stepsOf(run)).map(({ step }) => step as number);
      const left = steps.filter((step) => !ws.isGone("checkpoints", run, step)).slice(0, limit);
      for (const step of left) ws.deleteBlind("checkpoints", [run, step]);
      return left.length;
    }),
    clearEmitted: change((run: number, limit: number) => clear("emitted", emittedOf(run), limit)),
    clearArrivals: change((run: number, limit: number) => clear("arrivals", arrivalsOf(run), limit)),
    clearReadiness: change((run: number, limit: number) => clear("readiness", readinessOf(run), limit)),
    hasFlowRows: exists((run: number) => {
      const one = { ...arrivalsOf(run), limit: 1 };
      const other = { ...readinessOf(run), limit: 1 };
      ws.require(() => {
        ws.trySelect(one, AT_ONCE);
        ws.trySelect(other, AT_ONCE);
      });
      return ws.select(one).length > 0 || ws.select(other).length > 0;
    }),

    oldDedupId: exists((before: number) => ws.select(oldIds(mode, before, 1)).length > 0),
    clearOldDedupIds: change((before: number, limit: number) => {
      const old: RowOf<"once">[] = ws.select(oldIds(mode, before, limit));
      for (const id of old) ws.remove("once", id);
      return old.length;
    }),

    deleteRun: effect((run: number) => ws.deleteBlind("runs", [run])),
  };
}

/** An empty range is 1 to 0. */
function rangeOf({ least, most }: Record<string, unknown>): readonly [from: number, to: number] {
  return [(least as number | null) ?? 1, (most as number | null) ?? 0];
}
