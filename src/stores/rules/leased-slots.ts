// Leased slots: the slots of a queue that a worker leases as such (queue.Q6). They are rows of `begun`, which counts what queues admit,
// of a kind of their own: earlier versions ignore them, and see every item of the worker as one that holds a slot.
//
// leased-slots.S1. While a worker has a row, the row counts instead of the worker's items. The row is created and grows in claims of
//   the worker, under the lock of the queue's row. It starts with a slot for each function that may run.
// leased-slots.S2. A row counts as long as its worker is registered. So a takeover and a shutdown free the slots with the items.
// leased-slots.S3. A worker can give its slots back at any time: its items count again, and its functions are of these items.

import type { Rows } from "../rows/rows.ts";

const KIND = "slots";
/** No sweep deletes the row as expired. */
const FOREVER = Number.MAX_SAFE_INTEGER;
const HOLDER_AND_COUNT = ["key", "count"] as const;
const COUNT = ["count"] as const;
const WORKER = ["worker"] as const;
const PEEK = { peek: true } as const;

export interface SlotLease {
  readonly worker: number;
  readonly count: number;
}

/** leased-slots.S2 */
export function slotLeasesOf(rows: Rows, queue: string): readonly SlotLease[] {
  return rows
    .select("begun", [KIND, queue], HOLDER_AND_COUNT)
    .map(({ key, count }) => ({ worker: Number(key), count }))
    .filter(({ worker }) => rows.first("workers", [worker], WORKER, PEEK) !== undefined);
}

export function hasSlotLease(rows: Rows, queue: string, worker: number): boolean {
  return rows.get("begun", [KIND, queue, String(worker), FOREVER], COUNT) !== undefined;
}

export function addSlotLease(rows: Rows, queue: string, { worker, count }: SlotLease): void {
  rows.insert("begun", { kind: KIND, queue, key: String(worker), until: FOREVER, count });
  // leased-slots.S2
  for (const { key } of rows.select("begun", [KIND, queue], HOLDER_AND_COUNT))
    if (rows.first("workers", [Number(key)], WORKER, PEEK) === undefined) returnSlots(rows, queue, Number(key));
}

export function growSlotLease(rows: Rows, queue: string, { worker, count }: SlotLease): void {
  rows.set("begun", [KIND, queue, String(worker), FOREVER], { count });
}

/** leased-slots.S3 */
export function returnSlots(rows: Rows, queue: string, worker: number): void {
  rows.drop("begun", [KIND, queue, String(worker), FOREVER]);
}

/** leased-slots.S1. How many slots are taken: leased ones, and one for each item of a worker without leased slots. */
export function takenSlots(rows: Rows, queue: string, leases: readonly SlotLease[]): number {
  if (leases.length === 0) return rows.count("queue_busy", ["task", queue]);
  const leased = leases.reduce((sum, { count }) => sum + count, 0);
  // One query: what is read at two times would not fit together.
  const holders = rows.select("queue_busy", ["task", queue], WORKER, PEEK);
  return leased + holders.filter(({ worker }) => !leases.some((lease) => lease.worker === worker)).length;
}

/** How many items of the queue the worker holds. */
export function itemsHeldBy(rows: Rows, queue: string, worker: number): number {
  return rows.select("queue_busy", ["task", queue], WORKER, PEEK).filter((item) => item.worker === worker).length;
}
