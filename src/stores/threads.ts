// Threads: the port a LangGraph checkpointer stands on. A thread is a chain of checkpoints, with forks; a checkpoint is a
// body, its metadata, and a value per channel.
//
// T1. A checkpoint that is in is never changed: a second one with its id is answered `kept`, and nothing of it is written.
// T2. A value stands in the store once: checkpoints that have it in common name it by its number.
// T3. A write to a checkpoint is in once. Only writes that say so replace an earlier one at their position.
// T4. Bytes are given back as they came.
// T5. A thread is removed as a whole, in one transaction.

import { RepriseError } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";

/** What a serializer made of a value. */
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

/** A channel's value as a checkpoint names it. */
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
  /** The version is said to be an old one: when the thread knows no value of it, it has none. */
  readonly isOld: boolean;
}

export interface NewThreadCheckpoint extends CheckpointKey {
  readonly parent: string | undefined;
  readonly body: Serialized;
  readonly metadata: Serialized;
  readonly channels: readonly (StoredChannel | NewChannel)[];
}

/** `gone`: a value it names was removed with its thread meanwhile; nothing was written. */
export type PutOutcome = { readonly status: "stored" | "kept" | "gone" };

export interface ThreadWrite {
  readonly task: string;
  readonly position: number;
  readonly channel: string;
  readonly payload: Serialized;
  /** T3 */
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

/** A line of a list. */
export interface ListedCheckpoint extends CheckpointKey {
  /** Its number in the store; greater means stored later. */
  readonly number: number;
  readonly metadata: Serialized;
}

export interface CheckpointPage {
  readonly thread?: string | undefined;
  readonly namespace?: string | undefined;
  /** Only what comes after this one: a smaller id, or the same id and a smaller number. */
  readonly after?: { readonly id: string; readonly number: number } | undefined;
  readonly limit: number;
}

export interface Threads {
  /** T1, T2 */
  put(checkpoint: NewThreadCheckpoint): Promise<PutOutcome>;
  /** T3. The checkpoint need not be in yet. */
  putWrites(key: CheckpointKey, writes: readonly ThreadWrite[]): Promise<void>;
  /** Without an id: the one with the greatest. */
  find(key: Omit<CheckpointKey, "id"> & { readonly id: string | undefined }): Promise<ThreadCheckpoint | undefined>;
  findChannels(key: CheckpointKey): Promise<readonly StoredChannel[] | undefined>;
  readWrites(key: CheckpointKey): Promise<ThreadCheckpoint["writes"]>;
  /** Greatest id first. */
  list(page: CheckpointPage): Promise<readonly ListedCheckpoint[]>;
  /** T5 */
  remove(thread: string): Promise<void>;
}

/** A store that also keeps threads. */
export interface ThreadStore {
  readonly "~threads": Threads;
}

export function threadsOf(store: Store): Threads {
  if ("~threads" in store) return (store as Store & ThreadStore)["~threads"];
  throw new RepriseError("USAGE", `A ${store.kind} store keeps no threads of LangGraph. Give one in SQLite.`);
}
