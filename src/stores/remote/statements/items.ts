// @ts-nocheck
// Statements for queue items: insert, claim, return and delete.

import { DEADLINE_ITEM, isNodeRoute, isStartPending, QueueItemState } from "../../../kernel/index.ts";
import {
  anyTask,
  delayedItems,
  DUE_DEFINITIONS,
  dueTurns,
  heldIsolated,
  itemsOfRun,
  leasedIsolated,
  READY_NAMES,
  readyItems,
  SUSPECT_DEFINITIONS,
  SUSPECT_NAMES,
  suspectItemGroup,
  suspectItems,
  suspectTurnGroup,
  suspectTurns,
  stoppedItems,
  waitingTasks,
} from "./selections.ts";
import type { RowOf } from "../../rows/tables.ts";
import { prefetchNames, prefetchVersions } from "../prefetch-names.ts";
import { change, exists, effect, one, rows, type StatementContext } from "./context.ts";

type QueueRow = RowOf<"queue">;

/** As `ReadyItem` of rules/claim.ts names its columns. */
export function asReadyItem(row: QueueRow): object {
  const { run, item, name, priority, seq, attempt, failures, queue, key } = row;
  return { run, item, name, priority, availableAt: row.available_at, seq, attempt, failures, queue, key };
}

const BLANK = { attempt: 0, token: null, worker: null, takeovers: 0, failures: null, queue: null, key: null } as const;

export function itemStatements(context: StatementContext) {
  const { ws, mode, lock } = context;
  const free = mode === "claim" ? "skip" : "none";
  const find = (run: number, item: string): QueueRow | undefined => ws.get("queue", lock("queue"), run, item);
  const held = (run: number, item: string, token: string): QueueRow | undefined => {
    const row = find(run, item);
    return row?.token === token ? row : undefined;
  };
  const set = (run: number, item: string, values: Partial<QueueRow>): number => {
    const row = find(run, item);
    if (row === undefined) return 0;
    ws.update("queue", row, values);
    return 1;
  };
  /** `more`: the columns of the last two values. */
  const insertion = <A, B>(more: (a: A, b: B) => Partial<QueueRow>) =>
    effect(
      (
        run: number,
        item: string,
        kind: string,
        name: string,
        priority: number,
        at: number,
        seq: number,
        state: number,
        a: A,
        b: B,
      ) => {
        const place = { priority, available_at: at, seq, state };
        ws.insert("queue", { ...BLANK, run, item, kind, name, ...place, ...more(a, b) });
      },
    );
  /** Changes all of these rows. */
  const setAll = (where: readonly QueueRow[], values: Partial<QueueRow>): number => {
    for (const row of where) ws.update("queue", row, values);
    return where.length;
  };

  return {
    insertItem: insertion((token: string | null, worker: number | null) => ({ token, worker })),
    insertItemInQueue: insertion((queue: string | null, key: string | null) => ({ queue, key })),
    itemToken: one((run: number, item: string) => {
      const row = find(run, item);
      return row && { token: row.token };
    }),
    itemState: one((run: number, item: string) => {
      const row = find(run, item);
      return row && { state: row.state, attempt: row.attempt, availableAt: row.available_at, failures: row.failures };
    }),
    heldItem: exists((run: number, item: string, token: string) => held(run, item, token) !== undefined),
    slotOfItem: one((run: number, item: string) => {
      const row = find(run, item);
      return row && { kind: row.kind, queue: row.queue, key: row.key };
    }),
    deleteHeldItem: change((run: number, item: string, token: string) => {
      const row = held(run, item, token);
      if (row === undefined) return 0;
      ws.remove("queue", row);
      return 1;
    }),
    deleteItem: effect((run: number, item: string) => ws.deleteBlind("queue", [run, item])),
    returnItem: change(
      (
        state: number,
        at: number,
        attempt: number,
        failures: string | null,
        run: number,
        item: string,
        token: string,
      ) => {
        const row = held(run, item, token);
        if (row === undefined) return 0;
        const back = { state, available_at: at, attempt, takeovers: 0, token: null, worker: null };
        ws.update("queue", row, failures === null ? back : { ...back, failures });
        return 1;
      },
    ),
    claimItem: change((token: string, worker: number, run: number, item: string) =>
      set(run, item, { state: QueueItemState.leased, token, worker }),
    ),
    markItemReady: change((run: number, item: string) => set(run, item, { state: QueueItemState.ready })),
    stopItem: change((run: number, item: string) =>
      set(run, item, { state: QueueItemState.stopped, token: null, worker: null }),
    ),
    stopNodes: change((run: number) =>
      setAll(
        ws
          .select(waitingTasks(lock("queue"), run))
          // Only nodes of flows: the code of a workflow waits for the results of its tasks.
          .filter(({ name }) => isNodeRoute(name)),
        { state: QueueItemState.stopped },
      ),
    ),
    resumeItems: change((run: number) =>
      setAll(ws.select(stoppedItems(lock("queue"), run)), { state: QueueItemState.ready, takeovers: 0 }),
    ),
    hasItems: exists((run: number) => ws.select(itemsOfRun(lock("queue"), run, 1), 1_000).length > 0),
    hasTasks: exists((run: number) => ws.select(anyTask(run), 8).length > 0),

    // runs that have not started
    pendingStart: one((run: number) => {
      const row = find(run, "Start");
      return row !== undefined && isStartPending(row.state) ? { queue: row.queue, key: row.key } : undefined;
    }),
    admitRun: change((run: number) => set(run, "Start", { state: QueueItemState.admitted })),
    postponeStart: change(
      (at: number, name: string, priority: number, queue: string | null, key: string | null, run: number) =>
        set(run, "Start", { state: QueueItemState.delayed, available_at: at, name, priority, queue, key }),
    ),

    // due items
    dueItems: rows((now: number, limit: number) => {
      const due = ws.select(delayedItems(limit), limit + 1).filter((row) => row.available_at <= now);
      // Lock runs before items (remote.L1), then read again: another worker may have fired them.
      ws.require(() => {
        ws.prefetchRows(
          "runs",
          lock("runs"),
          due.map(({ run }) => [run]),
        );
        ws.prefetchRows(
          "queue",
          lock("queue"),
          // A deadline cancels a run that has not started.
          due.flatMap(({ run, item }) =>
            item === DEADLINE_ITEM
              ? [
                  [run, item],
                  [run, "Start"],
                ]
              : [[run, item]],
          ),
        );
      });
      return due.map(({ run, item, kind, name }) => ({ run, item, kind, name }));
    }),
    nextDue: one(() => ({ at: ws.select(delayedItems(1))[0]?.available_at ?? null })),

    // claims
    dueDefinitions: rows(() => {
      const names = prefetchVersions(context.writes);
      return namesOf(names?.map(({ name }) => name) ?? ws.counts(DUE_DEFINITIONS).map((row) => row["definition"]!));
    }),
    dueTurns: rows((definition: string, version: number, limit: number) =>
      ws.select(dueTurns(free, definition, version, limit)).map(({ run, priority }) => ({ run, priority })),
    ),
    suspectDefinitions: rows(() => {
      const names = prefetchVersions(context.writes);
      return namesOf(names?.map(({ name }) => name) ?? ws.counts(SUSPECT_DEFINITIONS).map((row) => row["definition"]!));
    }),
    suspectTurns: rows((definition: string, version: number, limit: number) =>
      ws.select(suspectTurns(definition, version, limit)).map(({ takeovers }) => ({ takeovers })),
    ),
    suspectTurnGroup: rows((definition: string, version: number, level: number, limit: number) =>
      ws.select(suspectTurnGroup(free, definition, version, level, limit)).map(({ run }) => ({ run })),
    ),
    holdsIsolatedTurn: exists((worker: number) => ws.select(heldIsolated(worker)).length > 0),
    readyNames: rows(() => {
      const names = prefetchNames(context.writes);
      if (names === undefined) return namesOf(ws.counts(READY_NAMES).map((row) => row["name"]!));
      // A claim reads the items anyway; a poll needs to know which names have any.
      return namesOf(
        mode === "claim" ? names : names.filter((name) => ws.select(readyItems("none", name, 1)).length > 0),
      );
    }),
    readyItems: rows((name: string, limit: number) => ws.select(readyItems(free, name, limit)).map(asReadyItem)),
    suspectNames: rows(() =>
      namesOf(prefetchNames(context.writes) ?? ws.counts(SUSPECT_NAMES).map((row) => row["name"]!)),
    ),
    suspectItems: rows((name: string, limit: number) =>
      ws.select(suspectItems(name, limit)).map(({ takeovers, queue, key }) => ({ takeovers, queue, key })),
    ),
    suspectItemGroup: rows((name: string, level: number, limit: number) =>
      ws.select(suspectItemGroup(free, name, level, limit)).map(asReadyItem),
    ),
    holdsIsolatedItem: exists((worker: number) => ws.select(leasedIsolated(worker)).length > 0),
  };
}

function namesOf(names: readonly unknown[]): readonly { readonly value: unknown }[] {
  return [...new Set(names)].map((value) => ({ value }));
}
