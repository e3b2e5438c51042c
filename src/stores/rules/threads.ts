// Threads: LangGraph threads on rows (thread-store.T1 to thread-store.T5).
//
// threads.H1. A checkpoint that refers to values holds a share lock on them until it is committed: a removal of the thread waits, and
//   then reads the checkpoint.
// threads.H2. A removal reads a snapshot of the thread, locks its values, and then reads its checkpoints again. If one was added
//   meanwhile, the removal is repeated.
// threads.H3. A checkpoint has its body for itself, and numbers are never used again: while its body exists, so do its other values
//   and its writes.

import { invariant } from "../../base/index.ts";
import type { Key, Rows, RowSession, Span, Tx } from "../rows/rows.ts";
import type { RowOf } from "../rows/tables.ts";
import { AGE, isStoredBefore, readThreadWindow, type AgedRow } from "./prune-threads.ts";
import { isSameRow, rowOf, serializedOf, type PayloadRow } from "../thread-payload.ts";
import type {
  CheckpointKey,
  CheckpointPage,
  ExpiredThreads,
  ExpireThreads,
  ListedCheckpoint,
  NewChannel,
  NewThreadCheckpoint,
  PutOutcome,
  StoredChannel,
  ThreadCheckpoint,
  Threads,
  ThreadWrite,
} from "../thread-store.ts";

/** The first numbers of a new checkpoint and of its new values. */
export interface FirstNumbers {
  readonly checkpoint: number;
  readonly value: number;
}

/** Where numbers come from: they are reserved before the transaction, or read in it. */
export interface ThreadNumbers {
  reserve(values: number): Promise<(rows: Rows) => FirstNumbers>;
}

type FindKey = Parameters<Threads["find"]>[0];
type CheckpointRow = Omit<RowOf<"langgraph_checkpoints">, "stored_at">;

const CHECKPOINT = ["checkpoint", "thread", "namespace", "id", "parent", "body", "metadata", "channels"] as const;
const NUMBER = ["checkpoint"] as const;
const VALUE = ["value", "type", "form", "data"] as const;
const VALUE_NUMBER = ["value"] as const;
const WRITE = ["task", "position", "channel", "type", "form", "data"] as const;
const NEWEST: Span<"langgraph_checkpoints"> = { backwards: true };

export class RowThreads implements Threads {
  readonly #session: RowSession;
  readonly #numbers: ThreadNumbers;

  constructor(session: RowSession, numbers: ThreadNumbers) {
    this.#session = session;
    this.#numbers = numbers;
  }

  async put(checkpoint: NewThreadCheckpoint): Promise<PutOutcome> {
    const numbers = await this.#numbers.reserve(checkpoint.channels.length + 2);
    return this.#session.transact("Storing a checkpoint", (tx) => put(tx, checkpoint, numbers));
  }

  putWrites(key: CheckpointKey, writes: readonly ThreadWrite[]): Promise<void> {
    return this.#session.transact("Storing writes", ({ rows }) => putWrites(rows, key, writes));
  }

  async find(key: FindKey): Promise<ThreadCheckpoint | undefined> {
    for (let removed: number | undefined; ;) {
      const found = await this.#session.read("Reading a checkpoint", (rows) => find(rows, key));
      if (typeof found !== "number") return found;
      invariant(found !== removed, "a checkpoint has no values", { checkpoint: found });
      removed = found;
    }
  }

  findChannels(key: CheckpointKey): Promise<readonly StoredChannel[] | undefined> {
    return this.#session.read("Reading a checkpoint", (rows) => {
      const row = findRow(rows, key);
      return row && channelsOf(row);
    });
  }

  readWrites(key: CheckpointKey): Promise<ThreadCheckpoint["writes"]> {
    return this.#session.read("Reading writes", (rows) => writesOf(rows, key));
  }

  list(page: CheckpointPage): Promise<readonly ListedCheckpoint[]> {
    return this.#session.read("Listing checkpoints", (rows) => list(rows, page));
  }

  async remove(thread: string): Promise<void> {
    await this.#remove(thread, () => true);
  }

  async expire({ storedBefore, after, dryRun }: ExpireThreads): Promise<ExpiredThreads> {
    const what = "Finding old threads";
    const window = await this.#session.read(what, (rows) => readThreadWindow(rows, after, storedBefore));
    const isOld = (row: AgedRow): boolean => isStoredBefore(row, storedBefore);
    let threads = 0;
    for (const thread of window.threads) {
      const isGone = dryRun
        ? await this.#session.read(what, (rows) => checkpointsOf(rows, thread).every(isOld))
        : await this.#remove(thread, isOld);
      threads += Number(isGone);
    }
    return { threads, after: window.after };
  }

  /** False: a checkpoint of the thread may not be removed. */
  async #remove(thread: string, mayRemove: (row: AgedRow) => boolean): Promise<boolean> {
    const what = "Removing a thread";
    for (;;) {
      const known = await this.#session.read(what, (rows) => threadRows(rows, thread));
      const outcome = await this.#session.transact(what, ({ rows }) => remove(rows, thread, known, mayRemove));
      if (outcome !== "again") return outcome === "removed";
    }
  }
}

// ── writing ──

function put({ rows, now }: Tx, checkpoint: NewThreadCheckpoint, numbers: (rows: Rows) => FirstNumbers): PutOutcome {
  const { thread, namespace, id, parent, body, metadata } = checkpoint;
  const stored = rows.first("langgraph_checkpoints_key", [thread, namespace, id], NUMBER);
  // thread-store.T1
  if (stored !== undefined) return { status: "kept" };
  // threads.H1
  const owned = checkpoint.channels.map(
    (channel) => !("value" in channel) || rows.is("langgraph_values", [channel.value], { thread }),
  );
  const found = checkpoint.channels.map((channel) =>
    "value" in channel
      ? undefined
      : rows.select("langgraph_values_by_place", [thread, channelPlace(namespace, channel)], VALUE),
  );
  if (owned.includes(false)) return { status: "gone" };

  const { checkpoint: number, value: first } = numbers(rows);
  let next = first;
  const insert = (place: string, { type, form, data }: PayloadRow): number => {
    rows.insert("langgraph_values", { value: next, thread, place, type, form, data });
    return next++;
  };
  const channels: (readonly [channel: string, version: number | string | null, value: number])[] = [];
  for (const [at, channel] of checkpoint.channels.entries()) {
    const value =
      "value" in channel
        ? channel.value
        : findOrInsertValue(found[at]!, channel, (row) => insert(channelPlace(namespace, channel), row));
    if (value !== undefined) channels.push([channel.channel, channel.version ?? null, value]);
  }
  rows.insert("langgraph_checkpoints", {
    checkpoint: number,
    thread,
    namespace,
    id,
    parent: parent ?? null,
    body: insert(placeOf("checkpoint", namespace, id), rowOf(body)),
    metadata: insert(placeOf("metadata", namespace, id), rowOf(metadata)),
    channels: JSON.stringify(channels),
    stored_at: now,
  });
  return { status: "stored" };
}

/** thread-store.T2. Compares the values: forks of a thread give the same version to different values. */
function findOrInsertValue(
  known: readonly (PayloadRow & { readonly value: number })[],
  { payload, isOld }: NewChannel,
  insert: (row: PayloadRow) => number,
): number | undefined {
  const row = rowOf(payload);
  const same = known.find((candidate) => isSameRow(candidate, row));
  if (same !== undefined) return same.value;
  return isOld && known.length === 0 ? undefined : insert(row);
}

function channelPlace(namespace: string, { channel, version }: NewChannel): string {
  return placeOf("channel", namespace, channel, version ?? null);
}

/** The codec authenticates the place, so that a value cannot be swapped for that of another place. */
function placeOf(...parts: readonly (string | number | null)[]): string {
  return JSON.stringify(parts);
}

/** thread-store.T3 */
function putWrites(rows: Rows, { thread, namespace, id }: CheckpointKey, writes: readonly ThreadWrite[]): void {
  for (const { task, position, channel, payload, replaces } of writes) {
    const { type, form, data } = rowOf(payload);
    const row = { thread, namespace, id, task, position, channel, type, form, data };
    const isAdded = rows.add("langgraph_writes", row);
    if (replaces && !isAdded)
      rows.set("langgraph_writes", [thread, namespace, id, task, position], { channel, type, form, data });
  }
}

/** The numbers of the checkpoints and values of a thread, of one snapshot. */
interface ThreadRows {
  readonly checkpoints: ReadonlySet<number>;
  readonly values: readonly number[];
}

function threadRows(rows: Rows, thread: string): ThreadRows {
  const checkpoints = rows.select("langgraph_checkpoints_by_thread", [thread], NUMBER);
  const values = rows.select("langgraph_values_by_place", [thread], VALUE_NUMBER);
  return {
    checkpoints: new Set(checkpoints.map(({ checkpoint }) => checkpoint)),
    values: values.map(({ value }) => value),
  };
}

function checkpointsOf(rows: Rows, thread: string): readonly AgedRow[] {
  return rows.select("langgraph_checkpoints_by_thread", [thread], AGE);
}

/** thread-store.T5, threads.H2. `again`: a checkpoint was added meanwhile. */
function remove(
  rows: Rows,
  thread: string,
  known: ThreadRows,
  mayRemove: (row: AgedRow) => boolean,
): "removed" | "kept" | "again" {
  for (const value of known.values) rows.own("langgraph_values", [value]);
  rows.barrier();
  const checkpoints = checkpointsOf(rows, thread);
  if (!checkpoints.every(mayRemove)) return "kept";
  if (checkpoints.some(({ checkpoint }) => !known.checkpoints.has(checkpoint))) return "again";
  for (const { checkpoint } of checkpoints) rows.drop("langgraph_checkpoints", [checkpoint]);
  for (const value of known.values) rows.drop("langgraph_values", [value]);
  rows.clear("langgraph_writes", [thread], {});
  // Without a checkpoint, another process has removed it.
  return checkpoints.length === 0 ? "kept" : "removed";
}

// ── reading ──

/** Without an id: the checkpoint with the greatest id. */
function findRow(rows: Rows, { thread, namespace, id }: FindKey): CheckpointRow | undefined {
  return id === undefined
    ? rows.first("langgraph_checkpoints_key", [thread, namespace], CHECKPOINT, NEWEST)
    : rows.first("langgraph_checkpoints_key", [thread, namespace, id], CHECKPOINT);
}

/** threads.H3. A number: the checkpoint with this number was removed while it was read. */
function find(rows: Rows, key: FindKey): ThreadCheckpoint | number | undefined {
  const row = findRow(rows, key);
  if (row === undefined) return undefined;
  const channels = channelsOf(row).map(({ channel, value }) => ({ channel, row: valueAt(rows, value) }));
  const body = valueAt(rows, row.body);
  const metadata = valueAt(rows, row.metadata);
  const writes = writesOf(rows, row);
  if (body === undefined || metadata === undefined) return row.checkpoint;
  const payloads: ThreadCheckpoint["channels"][number][] = [];
  for (const { channel, row: value } of channels) {
    if (value === undefined) return row.checkpoint;
    payloads.push({ channel, payload: serializedOf(value) });
  }
  return {
    thread: row.thread,
    namespace: row.namespace,
    id: row.id,
    parent: row.parent ?? undefined,
    body: serializedOf(body),
    metadata: serializedOf(metadata),
    channels: payloads,
    writes,
  };
}

function list(rows: Rows, page: CheckpointPage): readonly ListedCheckpoint[] {
  const found = rowsOf(rows, page);
  const metadata = found.map((row) => valueAt(rows, row.metadata));
  const listed: ListedCheckpoint[] = [];
  for (const [at, { thread, namespace, id, checkpoint: number }] of found.entries()) {
    const value = metadata[at];
    // Undefined: removed since it was found.
    if (value !== undefined) listed.push({ thread, namespace, id, number, metadata: serializedOf(value) });
  }
  return listed;
}

function rowsOf(rows: Rows, { thread, namespace, after, limit }: CheckpointPage): readonly CheckpointRow[] {
  const select = (id: Key, bound: Span<"langgraph_checkpoints">): readonly CheckpointRow[] => {
    const span = { ...bound, backwards: true, limit };
    if (thread === undefined) return rows.select("langgraph_checkpoints_by_id", id, CHECKPOINT, span);
    if (namespace === undefined)
      return rows.select("langgraph_checkpoints_by_thread", [thread, ...id], CHECKPOINT, span);
    return rows.select("langgraph_checkpoints_key", [thread, namespace, ...id], CHECKPOINT, span);
  };
  // Only a list of all threads reads rows of other namespaces.
  const among = thread === undefined && namespace !== undefined ? { namespace } : {};
  if (after === undefined) return select([], { also: among });
  const most = Math.min(after.number - 1, Number.MAX_SAFE_INTEGER);
  const same = select([after.id], { also: { ...among, checkpoint: { most } } });
  const smaller = select([], { before: after.id, also: among });
  return [...same, ...smaller].slice(0, limit);
}

function channelsOf({ channels }: Pick<CheckpointRow, "channels">): readonly StoredChannel[] {
  const list = JSON.parse(channels) as [channel: string, version: number | string | null, value: number][];
  return list.map(([channel, version, value]) => ({ channel, version: version ?? undefined, value }));
}

function valueAt(rows: Rows, value: number): PayloadRow | undefined {
  return rows.get("langgraph_values", [value], VALUE);
}

/** By task, then by position. */
function writesOf(rows: Rows, { thread, namespace, id }: CheckpointKey): ThreadCheckpoint["writes"] {
  return rows.select("langgraph_writes", [thread, namespace, id], WRITE).map((row) => {
    const { task, position, channel } = row;
    return { task, position, channel, payload: serializedOf(row) };
  });
}
