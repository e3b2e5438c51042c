// Thread store: the port of the LangGraph checkpointer. A thread is a chain of checkpoints, with forks. A checkpoint is a body,
// its metadata, and a value per channel.
//
// thread-store.T1. A stored checkpoint never changes: storing another one with its id returns `kept` and writes nothing.
// thread-store.T2. The store holds a value once: checkpoints that share a value refer to it by its number.
// thread-store.T3. A write to a checkpoint is stored once. A write replaces an earlier one at its position only with `replaces`.
// thread-store.T4. The store returns bytes as it got them.
// thread-store.T5. A thread is removed as a whole, in one transaction.

import { RepriseError, type EpochMs } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";

/** A serialized value. */
export interface Serialized {
  readonly type: string;
  readonly bytes: Uint8Array;
}

export interface CheckpointKey {
  readonly thread: string;
  readonly namespace: string;
  readonly id: string;
}

export type ChannelVersion = number | string | undefined;

/** A channel of a stored checkpoint; `value` is the number of its value. */
export interface StoredChannel {
  readonly channel: string;
  readonly version: ChannelVersion;
  readonly value: number;
}

/** A value to be stored, unless the thread has the same one for this channel and version. */
export interface NewChannel {
  readonly channel: string;
  readonly version: ChannelVersion;
  readonly payload: Serialized;
  /** The version is older than the checkpoint: when the thread has no value of this version, the channel has none. */
  readonly isOld: boolean;
}

export interface NewThreadCheckpoint extends CheckpointKey {
  readonly parent: string | undefined;
  readonly body: Serialized;
  readonly metadata: Serialized;
  readonly channels: readonly (StoredChannel | NewChannel)[];
}

/** `gone`: a value it refers to was removed with its thread in the meantime; nothing was written. */
export type PutOutcome = { readonly status: "stored" | "kept" | "gone" };

export interface ThreadWrite {
  readonly task: string;
  readonly position: number;
  readonly channel: string;
  readonly payload: Serialized;
  /** thread-store.T3 */
  readonly replaces: boolean;
}

export interface ThreadCheckpoint extends CheckpointKey {
  readonly parent: string | undefined;
  readonly body: Serialized;
  readonly metadata: Serialized;
  readonly channels: readonly { readonly channel: string; readonly payload: Serialized }[];
  /** By task, then by position. */
  readonly writes: readonly Omit<ThreadWrite, "replaces">[];
}

/** A checkpoint in a list. */
export interface ListedCheckpoint extends CheckpointKey {
  /** Its number in the store; greater means stored later. */
  readonly number: number;
  readonly metadata: Serialized;
}

export interface CheckpointPage {
  readonly thread?: string | undefined;
  readonly namespace?: string | undefined;
  /** Only checkpoints after this one: a smaller id, or the same id and a smaller number. */
  readonly after?: { readonly id: string; readonly number: number } | undefined;
  readonly limit: number;
}

export interface Threads {
  /** thread-store.T1, thread-store.T2 */
  put(checkpoint: NewThreadCheckpoint): Promise<PutOutcome>;
  /** thread-store.T3. The checkpoint may be stored later. */
  putWrites(key: CheckpointKey, writes: readonly ThreadWrite[]): Promise<void>;
  /** Without an id: the checkpoint with the greatest id. */
  find(key: Omit<CheckpointKey, "id"> & { readonly id: string | undefined }): Promise<ThreadCheckpoint | undefined>;
  findChannels(key: CheckpointKey): Promise<readonly StoredChannel[] | undefined>;
  readWrites(key: CheckpointKey): Promise<ThreadCheckpoint["writes"]>;
  /** Greatest id first. */
  list(page: CheckpointPage): Promise<readonly ListedCheckpoint[]>;
  /** thread-store.T5 */
  remove(thread: string): Promise<void>;
  /** prune-threads.A1. Removes the threads of one window whose newest checkpoint was stored before a time; or counts them. */
  expire(request: ExpireThreads): Promise<ExpiredThreads>;
}

export interface ExpireThreads {
  readonly storedBefore: EpochMs;
  /** Only threads with a greater name. */
  readonly after: string | undefined;
  readonly dryRun: boolean;
}

export interface ExpiredThreads {
  readonly threads: number;
  /** The next window starts after this thread; undefined: this was the last one. */
  readonly after: string | undefined;
}

/** A store that also stores threads. */
export interface ThreadStore {
  readonly "~threads": Threads;
}

export function threadsOf(store: Store): Threads {
  if ("~threads" in store) return (store as Store & ThreadStore)["~threads"];
  throw new RepriseError(
    "USAGE",
    `A ${store.kind} store has no LangGraph threads. Use a store in SQLite, PostgreSQL or MySQL.`,
  );
}
