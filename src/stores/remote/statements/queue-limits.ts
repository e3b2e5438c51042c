// @ts-nocheck
// Statements for named queues: their items, slots, rates and parked keys.
//
// queue-limits.L1. Parked items, `begun` and `lanes` change under the lock of the queue's row. A claim that cannot lock the row
//   treats the queue as full: another claim is using it.
// queue-limits.L2. A queue without a row has no limits, so none of its items was ever parked.

import { QueueItemState } from "../../../kernel/index.ts";
import { compareValues } from "../evaluate.ts";
import {
  begunAt,
  busyItems,
  dueRateGates,
  equal,
  forgettable,
  itemsOfRun,
  rateGatesOf,
  leasedItems,
  LINED,
  linedItems,
  linesOf,
  NEXT_RATE_GATE,
  parkedItems,
  parkedOfKind,
  parkedOfQueue,
  some,
} from "./selections.ts";
import type { RowOf } from "../../rows/tables.ts";
import { change, exists, effect, one, rows, type StatementContext } from "./context.ts";
import { asReadyItem } from "./items.ts";

const UNLIMITED = "{}";
const FORGET_AHEAD = 200;

interface KeyCount {
  readonly kind: string;
  readonly queue: string;
  readonly key: string;
  readonly count: number;
}

export function queueLimitStatements({ ws, mode, lock }: StatementContext) {
  const free = mode === "claim" ? "skip" : "none";

  /** queue-limits.L1. Undefined when the queue has no row. */
  const gate = (name: string): RowOf<"queues"> | undefined => {
    if (mode !== "claim") return ws.get("queues", lock("queues"), name);
    ws.require(() => {
      ws.prefetchRows("queues", "none", [[name]]);
      if (!ws.isLockedByOther("queues", name)) ws.prefetchRows("queues", "skip", [[name]]);
    });
    const row = ws.get("queues", "none", name);
    if (row === undefined || row.limits === UNLIMITED || !ws.isLockedByOther("queues", name)) return row;
    return { ...row, paused: 1 };
  };

  const unpark = (kind: string, queue: string, key: string, limit: number): number => {
    // queue-limits.L2
    if (mode === "write" && ws.get("queues", "update", queue) === undefined) return 0;
    const parked = ws.select(parkedItems(lock("queue"), kind, queue, key, limit));
    for (const row of parked) ws.update("queue", row, { state: QueueItemState.ready });
    return parked.length;
  };

  /** Prefetches the items that these keys free next. */
  const freed = (keys: readonly KeyCount[]): readonly KeyCount[] => {
    ws.require(() => {
      for (const { kind, queue, key, count } of keys) {
        ws.prefetchRows("queues", lock("queues"), [[queue]]);
        // Some parked items may be among the deleted ones.
        ws.trySelect(parkedItems(lock("queue"), kind, queue, key, count), count * 2);
      }
    });
    return keys;
  };

  /** The queues and names that have ready items, with the changes of this transaction. */
  const lines = (kind: string): readonly { readonly queue: string; readonly name: string }[] => {
    const found = new Map<string, { queue: string; name: string }>();
    const add = (queue: string, name: string): void => void found.set(`${queue}\n${name}`, { queue, name });
    for (const row of ws.counts(linesOf(kind))) add(row["queue"] as string, row["name"] as string);
    const { was, is: added } = ws.changed("queue", [...LINED, equal("kind", kind)]);
    for (const { queue, name } of was)
      if (ws.select(linedItems(free, kind, queue!, name, 1)).length === 0) found.delete(`${queue!}\n${name}`);
    for (const { queue, name } of added) add(queue!, name);
    return [...found.values()].sort((a, b) => compareValues(a.queue, b.queue) || compareValues(a.name, b.name));
  };

  return {
    queueLimits: one((name: string) => {
      const row = gate(name);
      return row && { limits: row.limits, paused: row.paused };
    }),
    declaredQueue: one((name: string) => {
      const row = ws.get("queues", lock("queues"), name);
      return row && { declared: row.declared };
    }),
    declareQueue: effect((name: string, limits: string) => {
      const row = ws.get("queues", lock("queues"), name);
      if (row === undefined) ws.insert("queues", { name, declared: limits, limits, paused: 0 });
      else ws.update("queues", row, { declared: limits, limits });
    }),
    changeQueue: change((name: string, paused: number | null, limits: string | null) => {
      const row = ws.get("queues", lock("queues"), name);
      if (row === undefined) return 0;
      ws.update("queues", row, { paused: paused ?? row.paused, limits: limits ?? row.limits });
      return 1;
    }),
    nextQueue: one((kind: string, after: string) => {
      const next = lines(kind).find(({ queue }) => compareValues(queue, after) > 0);
      return next && { queue: next.queue };
    }),
    nextNameInQueue: one((kind: string, queue: string, after: string) => {
      const next = lines(kind).find((line) => line.queue === queue && compareValues(line.name, after) > 0);
      return next && { name: next.name };
    }),
    readyItemsInQueue: rows((kind: string, queue: string, name: string, limit: number) => {
      const lined = ws.select(linedItems(free, kind, queue, name, limit));
      // Lock runs before items, then read again.
      if (mode === "write")
        ws.require(() => {
          ws.prefetchRows(
            "runs",
            "update",
            lined.map(({ run }) => [run]),
          );
          ws.prefetchRows(
            "queue",
            "update",
            lined.map(({ run, item }) => [run, item]),
          );
        });
      return lined.map(asReadyItem);
    }),
    countBusyInQueue: one((kind: string, queue: string) => ({
      count: ws.count({ kind: "count", table: "queue", where: busyItems(kind, queue) }),
    })),
    countBusyInKey: one((kind: string, queue: string, key: string) => ({
      count: ws.count({ kind: "count", table: "queue", where: busyItems(kind, queue, key) }),
    })),

    keysOfRun: rows((run: number) => {
      const items = itemsOfRun(lock("queue"), run, 1_000);
      const rowsOfRun = ws.select({ ...items, limit: 1 }, 1_000);
      const all = ws.isComplete(items) ? ws.select({ ...items, limit: Number.MAX_SAFE_INTEGER }) : undefined;
      if (rowsOfRun.length === 0) return [];
      if (all !== undefined) return freed(keysOf(all));
      const where = [equal("run", run), some("key")];
      const counted = ws.groups({ kind: "count", table: "queue", where, by: ["kind", "queue", "key"] });
      return freed(counted as unknown as KeyCount[]);
    }),
    keysOfWorker: rows((worker: number) => freed(keysOf(ws.select(leasedItems(lock("queue"), worker))))),
    parkItem: change((run: number, item: string) => {
      const row = ws.get("queue", lock("queue"), run, item);
      if (row === undefined) return 0;
      ws.update("queue", row, { state: QueueItemState.parked });
      return 1;
    }),
    hasParked: exists((kind: string) => ws.select(parkedOfKind(kind)).length > 0),
    unparkItems: change((kind: string, queue: string, key: string, limit: number) => {
      ws.require(() => {
        if (mode === "write") ws.prefetchRows("queues", "update", [[queue]]);
        ws.prefetch(parkedItems(lock("queue"), kind, queue, key, limit));
      });
      return unpark(kind, queue, key, limit);
    }),
    unparkQueue: change((kind: string, queue: string) => {
      const parked = ws.select(parkedOfQueue(lock("queue"), kind, queue));
      for (const row of parked) ws.update("queue", row, { state: QueueItemState.ready });
      return parked.length;
    }),

    // rates
    addRateUse: effect((kind: string, queue: string, key: string, until: number) => {
      const row = ws.get("begun", "none", kind, queue, key, until);
      if (row === undefined) ws.insert("begun", { kind, queue, key, until, count: 1 });
      else ws.update("begun", row, { count: row.count + 1 });
    }),
    rateUse: one((kind: string, queue: string, key: string, now: number) => {
      const begun = ws.select(begunAt(kind, queue, key, now));
      if (begun.length === 0) return { count: null, until: null };
      return {
        count: begun.reduce((sum, { count }) => sum + count, 0),
        until: Math.min(...begun.map(({ until }) => until)),
      };
    }),
    deleteExpiredRateUse: effect((now: number) => {
      const old = ws.select(forgettable(now), FORGET_AHEAD);
      for (const row of old) ws.remove("begun", row);
    }),
    insertRateGate: effect((kind: string, queue: string, key: string, opensAt: number) => {
      const row = ws.get("lanes", "none", kind, queue, key);
      if (row === undefined) ws.insert("lanes", { kind, queue, key, opens_at: opensAt });
      else ws.update("lanes", row, { opens_at: opensAt });
    }),
    dueRateGates: rows((now: number, limit: number) => {
      const due = ws.select(dueRateGates("none", now, limit));
      if (mode !== "claim") return due.map(({ kind, queue, key }) => ({ kind, queue, key }));
      // queue-limits.L1
      ws.require(() => {
        for (const { queue } of due)
          if (!ws.isLockedByOther("queues", queue)) ws.prefetchRows("queues", "skip", [[queue]]);
      });
      return due
        .filter(({ queue }) => !ws.isLockedByOther("queues", queue))
        .map(({ kind, queue, key }) => ({ kind, queue, key }));
    }),
    nextRateGate: one(() => ({ at: ws.select(NEXT_RATE_GATE)[0]?.opens_at ?? null })),
    deleteRateGate: effect((kind: string, queue: string, key: string) => ws.deleteBlind("lanes", [kind, queue, key])),
    deleteRateGates: effect((kind: string, queue: string) => {
      for (const row of ws.select(rateGatesOf(kind, queue))) ws.remove("lanes", row);
    }),
  };
}

/** Groups items by kind, queue and key. */
function keysOf(items: readonly RowOf<"queue">[]): readonly KeyCount[] {
  const keys = new Map<string, { kind: string; queue: string; key: string; count: number }>();
  for (const { kind, queue, key } of items) {
    if (queue === null || key === null) continue;
    const text = JSON.stringify([kind, queue, key]);
    const known = keys.get(text);
    if (known === undefined) keys.set(text, { kind, queue, key, count: 1 });
    else known.count += 1;
  }
  return [...keys.values()].sort(
    (a, b) => compareValues(a.kind, b.kind) || compareValues(a.queue, b.queue) || compareValues(a.key, b.key),
  );
}
