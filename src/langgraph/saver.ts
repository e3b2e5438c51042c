// Saver: RepriseSaver, which stores LangGraph's checkpoints in a Reprise store.
//
// saver.L1. A checkpoint is stored once. LangGraph puts the same id again if a run ends at the checkpoint it started from
//   (`durability: "exit"`): the first one stays, and the answer is the same.
// saver.L2. A put writes only the values that its checkpoint does not share with its parent.
// saver.L3. A task's writes are stored once, by position. LangGraph's control writes (error, scheduled, interrupt, resume)
//   replace earlier ones, as its protocol requires.
// saver.L4. The serializer gets back the bytes it returned, unchanged.

import {
  BaseCheckpointSaver,
  maxChannelVersion,
  TASKS,
  WRITES_IDX_MAP,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type PendingWrite,
  type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { isDeepStrictEqual } from "node:util";
import { checkOptionNames, RepriseError, type Duration } from "../base/index.ts";
import type { Serialized, ThreadCheckpoint, Threads } from "../stores/index.ts";
import { channelsToPut, serialize } from "./channel-values.ts";
import { opener, type OpenThreads, type StoreOptions } from "./open-threads.ts";
import { checkThreadRetention, pruneThreads, ThreadRetention, type PruneThreadsOptions } from "./thread-retention.ts";
import {
  checkedText,
  configOf,
  requireId,
  requireThread,
  threadConfigOf,
  type Config,
  type ThreadConfig,
} from "./thread-config.ts";

/** Options of `RepriseSaver`. */
export interface RepriseSaverOptions extends StoreOptions {
  /** The address of a store as in `createEngine`, `sqlite(path)`, or an engine, whose open store the saver then uses. */
  readonly store: StoreOptions["store"];
  /** The serializer of values; default: LangGraph's. */
  readonly serde?: SerializerProtocol | undefined;
  /** How long a thread is kept after its newest checkpoint. The saver deletes older threads while it is used. Default: forever. */
  readonly retention?: Duration | undefined;
}

/** Before this version of LangGraph's format, the pending sends were in the writes of the parent. */
const SENDS_IN_CHANNEL = 4;
const PAGE = 50;

/**
 * A checkpointer for LangGraph.js on a Reprise store: `graph.compile({ checkpointer })`.
 *
 * @example
 * ```ts
 * import { RepriseSaver } from "reprise/langgraph";
 * await using saver = new RepriseSaver({ store: "sqlite::memory:" });
 * for await (const { config, metadata } of saver.list({ configurable: { thread_id: "ann" } }, { limit: 10 }))
 *   console.log(config.configurable?.["checkpoint_id"], metadata?.step);
 * ```
 */
export class RepriseSaver extends BaseCheckpointSaver {
  readonly #open: () => Promise<OpenThreads>;
  readonly #retention: ThreadRetention | undefined;
  #opened: Promise<OpenThreads> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: RepriseSaverOptions) {
    if (typeof options !== "object" || options === null)
      throw new RepriseError("BAD_OPTIONS", `RepriseSaver: expected { store: "sqlite:…" }, got ${String(options)}.`);
    checkOptionNames(options, ["codec", "durability", "retention", "serde", "store"], "RepriseSaver");
    super(options.serde);
    const keepMs = checkThreadRetention(options.retention);
    this.#retention = keepMs === undefined ? undefined : new ThreadRetention(keepMs);
    this.#open = opener(options);
  }

  override async getTuple(config: Config): Promise<CheckpointTuple | undefined> {
    const { thread, namespace = "", id } = threadConfigOf(config);
    if (thread === undefined) return undefined;
    const threads = await this.#threads();
    const found = await threads.find({ thread, namespace, id });
    return found && this.#tupleOf(threads, found);
  }

  override async *list(config: Config, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { limit = Infinity, before, filter = {} } = options;
    const wanted = threadConfigOf(config);
    const threads = await this.#threads();
    let given = 0;
    for await (const listed of this.#listed(threads, wanted, before && threadConfigOf(before).id)) {
      if (given >= limit) return;
      const metadata: unknown = await this.#load(listed.metadata);
      if (!Object.entries(filter).every(([key, value]) => isDeepStrictEqual(Object(metadata)[key], value))) continue;
      const found = await threads.find(listed);
      // The checkpoint was removed after it was listed.
      if (found === undefined) continue;
      given += 1;
      yield await this.#tupleOf(threads, found);
    }
  }

  /** Newest first, page by page. */
  async *#listed(threads: Threads, { thread, namespace, id }: ThreadConfig, before: string | undefined) {
    if (id !== undefined && before !== undefined && id >= before) return;
    let after: { id: string; number: number } | undefined;
    if (id !== undefined) after = { id, number: Infinity };
    else if (before !== undefined) after = { id: before, number: 0 };
    for (;;) {
      const page = await threads.list({ thread, namespace, after, limit: PAGE });
      for (const listed of page) {
        if (id !== undefined && listed.id !== id) return;
        yield listed;
      }
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  }

  /** saver.L1, saver.L2 */
  override async put(
    config: Config,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<Config> {
    const place = threadConfigOf(config);
    const { namespace = "", id: parent } = place;
    const thread = requireThread(place, "put");
    const id = requireId({ ...place, id: checkedText("checkpoint.id", checkpoint.id) }, "put");
    const threads = await this.#threads();
    const inherited = parent === undefined ? [] : await threads.findChannels({ thread, namespace, id: parent });
    const body = await serialize(this.serde, { ...checkpoint, channel_values: {} });
    const row = { thread, namespace, id, parent, body, metadata: await serialize(this.serde, metadata) };
    const hasParent = parent !== undefined;
    const channels = await channelsToPut(this.serde, checkpoint, newVersions, inherited, hasParent);
    const { status } = await threads.put({ ...row, channels });
    // The thread was removed after the parent was read, so the checkpoint shares no values.
    if (status === "gone")
      await threads.put({
        ...row,
        channels: await channelsToPut(this.serde, checkpoint, newVersions, undefined, hasParent),
      });
    this.#retention?.onPut(await this.#openThreads());
    return configOf(thread, namespace, id);
  }

  /** saver.L3 */
  override async putWrites(config: Config, writes: PendingWrite[], taskId: string): Promise<void> {
    const place = threadConfigOf(config);
    const { namespace = "" } = place;
    const thread = requireThread(place, "putWrites");
    const id = requireId(place, "putWrites");
    const task = checkedText("taskId", taskId) ?? "";
    const threads = await this.#threads();
    const rows = await Promise.all(
      writes.map(async ([channel, value], index) => {
        const isControl = Object.hasOwn(WRITES_IDX_MAP, channel);
        const position = isControl ? WRITES_IDX_MAP[channel]! : index;
        return { task, position, channel, payload: await serialize(this.serde, value), replaces: isControl };
      }),
    );
    await threads.putWrites({ thread, namespace, id }, rows);
  }

  override async deleteThread(threadId: string): Promise<void> {
    const thread = requireThread({ ...NOWHERE, thread: checkedText("threadId", threadId) }, "deleteThread");
    await (await this.#threads()).remove(thread);
  }

  /**
   * Deletes the threads whose newest checkpoint is older than a time, in small batches, and returns how many.
   *
   * @example
   * ```ts
   * import { RepriseSaver } from "reprise/langgraph";
   * await using saver = new RepriseSaver({ store: "sqlite::memory:" });
   * const { threads } = await saver.prune({ olderThan: "90 days", dryRun: true });
   * console.log(`${threads} threads are older`);
   * ```
   */
  async prune(options: PruneThreadsOptions): Promise<{ readonly threads: number }> {
    return pruneThreads(await this.#openThreads(), options);
  }

  /** Closes the store if this saver opened it; the store of an engine stays open. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#retention?.settled();
      await (await this.#opened?.catch(() => undefined))?.close();
    })();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #threads(): Promise<Threads> {
    return (await this.#openThreads()).threads;
  }

  async #openThreads(): Promise<OpenThreads> {
    if (this.#closed !== undefined) throw new RepriseError("USAGE", "The saver is closed. Create a new RepriseSaver.");
    // The next call tries to open the store again.
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  /** saver.L4 */
  async #load({ type, bytes }: Serialized): Promise<unknown> {
    return (await this.serde.loadsTyped(type, bytes)) as unknown;
  }

  async #tupleOf(threads: Threads, found: ThreadCheckpoint): Promise<CheckpointTuple> {
    const { thread, namespace, id, parent } = found;
    const values = found.channels.map(async ({ channel, payload }) => [channel, await this.#load(payload)] as const);
    const writes = found.writes.map(async ({ task, channel, payload }): Promise<CheckpointPendingWrite> => [
      task,
      channel,
      await this.#load(payload),
    ]);
    const checkpoint = {
      ...((await this.#load(found.body)) as Checkpoint),
      channel_values: Object.fromEntries(await Promise.all(values)),
    };
    if (checkpoint.v < SENDS_IN_CHANNEL && parent !== undefined)
      await this.#addSends(checkpoint, await threads.readWrites({ thread, namespace, id: parent }));
    return {
      config: configOf(thread, namespace, id),
      checkpoint,
      metadata: (await this.#load(found.metadata)) as CheckpointMetadata,
      pendingWrites: await Promise.all(writes),
      ...(parent !== undefined && { parentConfig: configOf(thread, namespace, parent) }),
    };
  }

  async #addSends(checkpoint: Checkpoint, parentsWrites: ThreadCheckpoint["writes"]): Promise<void> {
    const sends = parentsWrites.filter(({ channel }) => channel === TASKS);
    checkpoint.channel_values[TASKS] = await Promise.all(sends.map(({ payload }) => this.#load(payload)));
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

const NOWHERE: ThreadConfig = { thread: undefined, namespace: undefined, id: undefined };
