// SQLite threads: LangGraph threads in SQLite (thread-store.T1 to thread-store.T5).

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
import { plainRows } from "../rules/run-rows.ts";
import type { SqliteSession, SqliteTx } from "./sqlite-session.ts";
import type { Statements } from "./statements.ts";
import { isSameRow, rowOf, serializedOf, type PayloadRow } from "../thread-payload.ts";

/** In SQLite a blob is greater than every text. */
const AFTER_EVERY_TEXT = new Uint8Array(0);

interface CheckpointRow extends CheckpointKey {
  readonly number: number;
  readonly parent: string | null;
  readonly body: number;
  readonly metadata: number;
  /** A JSON list of [channel, version or null, number of the value]. */
  readonly channels: string;
}

type ValueRow = PayloadRow & { readonly value: number };
type WriteRow = PayloadRow & Pick<ThreadWrite, "task" | "position" | "channel">;

export class SqliteThreads implements Threads {
  readonly #session: SqliteSession;

  constructor(session: SqliteSession) {
    this.#session = session;
  }

  put(checkpoint: NewThreadCheckpoint): Promise<PutOutcome> {
    return this.#session.transact("Storing a checkpoint", (tx) => put(tx, checkpoint));
  }

  putWrites({ thread, namespace, id }: CheckpointKey, writes: readonly ThreadWrite[]): Promise<void> {
    return this.#session.transact("Storing writes", ({ sql }) => {
      for (const { task, position, channel, payload, replaces } of writes) {
        const { type, form, data } = rowOf(payload);
        const statement = replaces ? sql.replaceThreadWrite : sql.addThreadWrite;
        statement.run(thread, namespace, id, task, position, channel, type, form, data);
      }
    });
  }

  find(key: Parameters<Threads["find"]>[0]): Promise<ThreadCheckpoint | undefined> {
    return this.#readSnapshot("Reading a checkpoint", (sql) => {
      const row = findRow(sql, key);
      return row && checkpointOf(sql, row);
    });
  }

  findChannels(key: CheckpointKey): Promise<readonly StoredChannel[] | undefined> {
    return this.#session.read("Reading a checkpoint", (sql) => {
      const row = findRow(sql, key);
      return row && channelsOf(row);
    });
  }

  readWrites(key: CheckpointKey): Promise<ThreadCheckpoint["writes"]> {
    return this.#session.read("Reading writes", (sql) => writesOf(sql, key));
  }

  list({ thread, namespace, after, limit }: CheckpointPage): Promise<readonly ListedCheckpoint[]> {
    return this.#readSnapshot("Listing checkpoints", (sql) => {
      const statement = statementFor(sql, thread, namespace);
      const bound = [after?.id ?? AFTER_EVERY_TEXT, after?.number ?? 0] as const;
      const rows = plainRows<CheckpointRow>(statement.all(thread ?? null, namespace ?? null, ...bound, limit));
      return rows.map((row) => ({ ...keyOf(row), number: row.number, metadata: valueOf(sql, row.metadata) }));
    });
  }

  remove(thread: string): Promise<void> {
    return this.#session.transact("Removing a thread", ({ sql }) => {
      sql.removeThreadCheckpoints.run(thread);
      sql.removeThreadValues.run(thread);
      sql.removeThreadWrites.run(thread);
    });
  }

  /** Several statements that read one snapshot, also when another process removes the thread. */
  #readSnapshot<T>(what: string, body: (sql: Statements) => T): Promise<T> {
    return this.#session.read(what, (sql) => {
      sql.beginReading.run();
      try {
        return body(sql);
      } finally {
        sql.rollback.run();
      }
    });
  }
}

// ── writing ──

function put(tx: SqliteTx, checkpoint: NewThreadCheckpoint): PutOutcome {
  const { sql } = tx;
  const { thread, namespace, id, parent, body, metadata } = checkpoint;
  // thread-store.T1
  if (sql.threadCheckpoint.get(thread, namespace, id) !== undefined) return { status: "kept" };
  const named = checkpoint.channels.filter((channel) => "value" in channel);
  if (named.some(({ value }) => sql.threadHasValue.get(value, thread) === undefined)) return { status: "gone" };

  let { value: last } = sql.lastThreadValue.get() as { value: number };
  const insert = (place: string, { type, form, data }: PayloadRow): number => {
    sql.insertThreadValue.run(++last, thread, place, type, form, data);
    return last;
  };
  const channels: StoredChannel[] = [];
  for (const channel of checkpoint.channels) {
    const value = "value" in channel ? channel.value : findOrInsertValue(sql, checkpoint, channel, insert);
    if (value !== undefined) channels.push({ channel: channel.channel, version: channel.version, value });
  }
  sql.insertThreadCheckpoint.run(
    thread,
    namespace,
    id,
    parent ?? null,
    insert(placeOf("checkpoint", namespace, id), rowOf(body)),
    insert(placeOf("metadata", namespace, id), rowOf(metadata)),
    JSON.stringify(channels.map(({ channel, version, value }) => [channel, version ?? null, value])),
  );
  return { status: "stored" };
}

/** thread-store.T2. Compares the values: forks of a thread give the same version to different values. */
function findOrInsertValue(
  sql: Statements,
  { thread, namespace }: CheckpointKey,
  { channel, version, payload, isOld }: NewChannel,
  insert: (place: string, row: PayloadRow) => number,
): number | undefined {
  const place = placeOf("channel", namespace, channel, version ?? null);
  const row = rowOf(payload);
  const known = sql.threadValuesAt.all(thread, place) as unknown as readonly ValueRow[];
  const same = known.find((candidate) => isSameRow(candidate, row));
  if (same !== undefined) return same.value;
  return isOld && known.length === 0 ? undefined : insert(place, row);
}

/** The codec authenticates the place, so that a value cannot be swapped for that of another place. */
function placeOf(...parts: readonly (string | number | null)[]): string {
  return JSON.stringify(parts);
}

// ── reading ──

function findRow(
  sql: Statements,
  { thread, namespace, id }: Parameters<Threads["find"]>[0],
): CheckpointRow | undefined {
  const row =
    id === undefined
      ? sql.newestThreadCheckpoint.get(thread, namespace)
      : sql.threadCheckpoint.get(thread, namespace, id);
  return row as unknown as CheckpointRow | undefined;
}

function statementFor(
  sql: Statements,
  thread: string | undefined,
  namespace: string | undefined,
): Statements["checkpointsOfAll"] {
  if (thread === undefined) return sql.checkpointsOfAll;
  return namespace === undefined ? sql.checkpointsOfThread : sql.checkpointsOfNamespace;
}

function checkpointOf(sql: Statements, row: CheckpointRow): ThreadCheckpoint {
  return {
    ...keyOf(row),
    parent: row.parent ?? undefined,
    body: valueOf(sql, row.body),
    metadata: valueOf(sql, row.metadata),
    channels: channelsOf(row).map(({ channel, value }) => ({ channel, payload: valueOf(sql, value) })),
    writes: writesOf(sql, row),
  };
}

function keyOf({ thread, namespace, id }: CheckpointKey): CheckpointKey {
  return { thread, namespace, id };
}

function channelsOf({ channels }: CheckpointRow): readonly StoredChannel[] {
  const list = JSON.parse(channels) as [channel: string, version: number | string | null, value: number][];
  return list.map(([channel, version, value]) => ({ channel, version: version ?? undefined, value }));
}

function valueOf(sql: Statements, value: number): Serialized {
  return serializedOf(sql.threadValue.get(value) as unknown as PayloadRow);
}

function writesOf(sql: Statements, { thread, namespace, id }: CheckpointKey): ThreadCheckpoint["writes"] {
  const rows = sql.threadWrites.all(thread, namespace, id) as unknown as readonly WriteRow[];
  return rows.map((row) => {
    const { task, position, channel } = row;
    return { task, position, channel, payload: serializedOf(row) };
  });
}
