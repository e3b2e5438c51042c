// RemoteThreads: LangGraph threads on a remote store (../thread-store.ts has the invariants).
//
// remote-threads.H1. A checkpoint that refers to values holds a share lock on them until it is committed: a removal of the thread
//   waits, and then reads the checkpoint.
// remote-threads.H2. A thread is removed from a snapshot, with its values locked. If a checkpoint was added meanwhile, the removal
//   is repeated.

import type {
  CheckpointKey,
  CheckpointPage,
  ListedCheckpoint,
  NewChannel,
  NewThreadCheckpoint,
  PutOutcome,
  Serialized,
  StoredChannel,
  ThreadCheckpoint,
  Threads,
  ThreadWrite,
} from "../thread-store.ts";
import { isSameRow, rowOf, serializedOf, type PayloadRow } from "../thread-payload.ts";
import type { NumberBlock, NumberAllocator } from "./number-allocator.ts";
import type { Condition, Select } from "./query.ts";
import type { Reader } from "./reader.ts";
import { equal, lookup } from "./reads.ts";
import type { TransactionRunner } from "./runner.ts";
import { rulesWork } from "./rules-work.ts";
import type { RowOf, TableName } from "../rows/tables.ts";
import type { WorkingSet } from "./working-set.ts";

type CheckpointRow = RowOf<"langgraph_checkpoints">;
type ValueRow = RowOf<"langgraph_values">;
type WriteRow = RowOf<"langgraph_writes">;

export interface ThreadNumbers {
  readonly checkpoints: NumberAllocator;
  readonly values: NumberAllocator;
}

export class RemoteThreads implements Threads {
  readonly #runner: TransactionRunner;
  readonly #reader: Reader;
  readonly #numbers: ThreadNumbers;

  constructor(runner: TransactionRunner, reader: Reader, numbers: ThreadNumbers) {
    this.#runner = runner;
    this.#reader = reader;
    this.#numbers = numbers;
  }

  async put(checkpoint: NewThreadCheckpoint): Promise<PutOutcome> {
    const values = await this.#numbers.values.take(checkpoint.channels.length + 2);
    const { next: number } = await this.#numbers.checkpoints.take(1);
    return this.#runner.run(rulesWork("Storing a checkpoint", (_tx, ws) => put(ws, checkpoint, number, values)));
  }

  putWrites(key: CheckpointKey, writes: readonly ThreadWrite[]): Promise<void> {
    return this.#runner.run(rulesWork("Storing writes", (_tx, ws) => putWrites(ws, key, writes)));
  }

  async find(key: Parameters<Threads["find"]>[0]): Promise<ThreadCheckpoint | undefined> {
    const what = "Reading a checkpoint";
    for (;;) {
      const [row] = await this.#reader.rows(what, checkpointAt(key));
      if (row === undefined) return undefined;
      const numbers = [row.body, row.metadata, ...channelsOf(row).map(({ value }) => value)];
      const [again = [], values = [], writes = []] = await this.#reader.read(what, [
        checkpointAt(row),
        lookup("langgraph_values", ["value"], keysOf(numbers)),
        writesAt(row),
      ]);
      // Removed since it was found, and possibly stored again.
      if ((again[0] as CheckpointRow | undefined)?.checkpoint !== row.checkpoint) continue;
      return checkpointOf(row, values as unknown as ValueRow[], writes as unknown as WriteRow[]);
    }
  }

  async findChannels(key: CheckpointKey): Promise<readonly StoredChannel[] | undefined> {
    const [row] = await this.#reader.rows("Reading a checkpoint", checkpointAt(key));
    return row && channelsOf(row);
  }

  async readWrites(key: CheckpointKey): Promise<ThreadCheckpoint["writes"]> {
    return (await this.#reader.rows("Reading writes", writesAt(key))).map(writeOf);
  }

  async list({ thread, namespace, after, limit }: CheckpointPage): Promise<readonly ListedCheckpoint[]> {
    const what = "Listing checkpoints";
    const of: Condition[] = [];
    if (thread !== undefined) of.push(equal("thread", thread));
    if (namespace !== undefined) of.push(equal("namespace", namespace));
    const page = (where: readonly Condition[]): Select<"langgraph_checkpoints"> => ({
      ...selectFrom("langgraph_checkpoints", [...of, ...where]),
      order: [
        ["id", "desc"],
        ["checkpoint", "desc"],
      ],
      limit,
    });
    const pages =
      after === undefined
        ? [page([])]
        : [
            page([equal("id", after.id), { column: "checkpoint", is: "<", value: after.number }]),
            page([{ column: "id", is: "<", value: after.id }]),
          ];
    const rows = ((await this.#reader.read(what, pages)).flat() as unknown as CheckpointRow[]).slice(0, limit);
    if (rows.length === 0) return [];
    const found = await this.#reader.rows(
      what,
      lookup("langgraph_values", ["value"], keysOf(rows.map(({ metadata }) => metadata))),
    );
    const values = new Map(found.map((row) => [row.value, row]));
    return rows.flatMap((row) => {
      const value = values.get(row.metadata);
      return value === undefined ? [] : [{ ...keyOf(row), number: row.checkpoint, metadata: serializedOf(value) }];
    });
  }

  /** remote-threads.H2 */
  async remove(thread: string): Promise<void> {
    const what = "Removing a thread";
    for (;;) {
      const where = [equal("thread", thread)];
      const [checkpoints = [], values = [], writes = []] = await this.#reader.read(what, [
        selectFrom("langgraph_checkpoints", where),
        selectFrom("langgraph_values", where),
        selectFrom("langgraph_writes", where),
      ]);
      const rows = { checkpoints, values, writes } as unknown as ThreadRows;
      if (await this.#runner.run(rulesWork(what, (_tx, ws) => remove(ws, thread, rows)))) return;
    }
  }
}

interface ThreadRows {
  readonly checkpoints: readonly CheckpointRow[];
  readonly values: readonly ValueRow[];
  readonly writes: readonly WriteRow[];
}

// ── writes ──

function put(ws: WorkingSet, checkpoint: NewThreadCheckpoint, number: number, free: NumberBlock): PutOutcome {
  const { thread, namespace, id, parent, body, metadata } = checkpoint;
  // thread-store.T1
  if (ws.select(checkpointAt(checkpoint)).length > 0) return { status: "kept" };
  const named = checkpoint.channels.flatMap((channel) => ("value" in channel ? [channel.value] : []));
  // remote-threads.H1
  ws.require(() => ws.prefetchRows("langgraph_values", "share", keysOf(named.toSorted((a, b) => a - b))));
  if (named.some((value) => ws.get("langgraph_values", "share", value)?.thread !== thread)) return { status: "gone" };
  let next = free.next;
  const insert = (place: string, row: PayloadRow): number => {
    ws.insert("langgraph_values", { value: next, thread, place, ...row });
    return next++;
  };
  const channels: StoredChannel[] = [];
  for (const channel of checkpoint.channels) {
    const value = "value" in channel ? channel.value : settle(ws, checkpoint, channel, insert);
    if (value !== undefined) channels.push({ channel: channel.channel, version: channel.version, value });
  }
  ws.insert("langgraph_checkpoints", {
    checkpoint: number,
    thread,
    namespace,
    id,
    parent: parent ?? null,
    body: insert(placeOf("checkpoint", namespace, id), rowOf(body)),
    metadata: insert(placeOf("metadata", namespace, id), rowOf(metadata)),
    channels: JSON.stringify(channels.map(({ channel, version, value }) => [channel, version ?? null, value])),
  });
  return { status: "stored" };
}

/** thread-store.T2. A version alone does not identify a value: forks of a thread continue from the same number. */
function settle(
  ws: WorkingSet,
  { thread, namespace }: CheckpointKey,
  { channel, version, payload, isOld }: NewChannel,
  insert: (place: string, row: PayloadRow) => number,
): number | undefined {
  const place = placeOf("channel", namespace, channel, version ?? null);
  const row = rowOf(payload);
  const known = ws.select({
    ...selectFrom("langgraph_values", [equal("thread", thread), equal("place", place)]),
    lock: "share",
  });
  const same = known.find((candidate) => isSameRow(candidate, row));
  if (same !== undefined) return same.value;
  return isOld && known.length === 0 ? undefined : insert(place, row);
}

/** Part of the encryption context: a value cannot be swapped with one of another place unnoticed. */
function placeOf(...parts: readonly (string | number | null)[]): string {
  return JSON.stringify(parts);
}

/** thread-store.T3 */
function putWrites(ws: WorkingSet, { thread, namespace, id }: CheckpointKey, writes: readonly ThreadWrite[]): void {
  const keys = writes.map(({ task, position }) => [thread, namespace, id, task, position] as const);
  ws.require(() => ws.prefetchRows("langgraph_writes", "update", keys));
  for (const [index, { task, position, channel, payload, replaces }] of writes.entries()) {
    const values = { channel, ...rowOf(payload) };
    const there = ws.get("langgraph_writes", "update", ...keys[index]!);
    if (there === undefined) ws.insert("langgraph_writes", { thread, namespace, id, task, position, ...values });
    else if (replaces) ws.update("langgraph_writes", there, values);
  }
}

/** False when a checkpoint was added meanwhile. */
function remove(ws: WorkingSet, thread: string, { checkpoints, values, writes }: ThreadRows): boolean {
  ws.require(() => ws.prefetchRows("langgraph_values", "update", keysOf(values.map(({ value }) => value))));
  const known = new Set(checkpoints.map(({ checkpoint }) => checkpoint));
  // Read after the locks, to see the commits of earlier lock holders.
  const now = ws.select(selectFrom("langgraph_checkpoints", [equal("thread", thread)]));
  if (now.some(({ checkpoint }) => !known.has(checkpoint))) return false;
  for (const row of now) ws.remove("langgraph_checkpoints", row);
  for (const { value } of values) {
    const row = ws.get("langgraph_values", "update", value);
    if (row !== undefined) ws.remove("langgraph_values", row);
  }
  const keys = writes.map(({ namespace, id, task, position }) => [thread, namespace, id, task, position] as const);
  ws.require(() => ws.prefetchRows("langgraph_writes", "update", keys));
  for (const key of keys) {
    const row = ws.get("langgraph_writes", "update", ...key);
    if (row !== undefined) ws.remove("langgraph_writes", row);
  }
  return true;
}

// ── reads ──

function selectFrom<T extends TableName>(table: T, where: readonly Condition[]): Select<T> {
  return { kind: "select", table, where, lock: "none" };
}

function keysOf(numbers: readonly number[]): readonly (readonly [number])[] {
  return [...new Set(numbers)].map((number) => [number] as const);
}

/** Without an id: the checkpoint with the greatest id. */
function checkpointAt({ thread, namespace, id }: Parameters<Threads["find"]>[0]): Select<"langgraph_checkpoints"> {
  const where = [equal("thread", thread), equal("namespace", namespace)];
  if (id !== undefined) return { ...selectFrom("langgraph_checkpoints", [...where, equal("id", id)]), limit: 1 };
  return { ...selectFrom("langgraph_checkpoints", where), order: [["id", "desc"]], limit: 1 };
}

function writesAt({ thread, namespace, id }: CheckpointKey): Select<"langgraph_writes"> {
  return {
    ...selectFrom("langgraph_writes", [equal("thread", thread), equal("namespace", namespace), equal("id", id)]),
    order: [
      ["task", "asc"],
      ["position", "asc"],
    ],
  };
}

function checkpointOf(row: CheckpointRow, values: readonly ValueRow[], writes: readonly WriteRow[]): ThreadCheckpoint {
  const byNumber = new Map(values.map((value) => [value.value, value]));
  const valueOf = (value: number): Serialized => serializedOf(byNumber.get(value)!);
  return {
    ...keyOf(row),
    parent: row.parent ?? undefined,
    body: valueOf(row.body),
    metadata: valueOf(row.metadata),
    channels: channelsOf(row).map(({ channel, value }) => ({ channel, payload: valueOf(value) })),
    writes: writes.map(writeOf),
  };
}

function keyOf({ thread, namespace, id }: CheckpointKey): CheckpointKey {
  return { thread, namespace, id };
}

function channelsOf({ channels }: CheckpointRow): readonly StoredChannel[] {
  const list = JSON.parse(channels) as [channel: string, version: number | string | null, value: number][];
  return list.map(([channel, version, value]) => ({ channel, version: version ?? undefined, value }));
}

function writeOf(row: WriteRow): ThreadCheckpoint["writes"][number] {
  const { task, position, channel } = row;
  return { task, position, channel, payload: serializedOf(row) };
}
