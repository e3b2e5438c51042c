// RemoteSession: wires the parts of an open remote store; owns its clock and its rows in `writers`.
//
// remote.N1. Time is the server's (`server`), or the given clock's, raised to the highest time any writer has stored (`given`).
//   It never goes backwards (store-clock.C1).
// remote.N2. A connection's row in `writers` is deleted when the connection is closed cleanly. The row of a connection whose
//   last commit is unresolved stays: it records the outcome.

import { RepriseError, type EpochMs } from "../../base/index.ts";
import { leastNumberAt, type RunNumber } from "../../kernel/index.ts";
import { isFederated } from "../rules/run-log.ts";
import { StoreClock } from "../rules/store-clock.ts";
import { CODEC_KEY_PREFIX, openPayloadCipher, PayloadCipher } from "../payload-cipher.ts";
import { OutsideContents } from "../contents/outside-contents.ts";
import { Contents } from "../contents/run-contents.ts";
import type { OpenOptions } from "../store-source.ts";
import type { Backend } from "./backend.ts";
import { Batches } from "./batches.ts";
import { readCodecNotes } from "./describe.ts";
import { History, readIncarnation } from "./history.ts";
import { ConnectionPool, type ConnectionUse } from "./connection-pool.ts";
import { RowCache } from "./row-cache.ts";
import { NumberAllocator } from "./number-allocator.ts";
import { refuseWrite } from "./opened-to-read.ts";
import { CommitResolver } from "./commit-resolver.ts";
import { withRetry, RETRY_FOR_MS } from "./retry.ts";
import { Reader } from "./reader.ts";
import { TransactionRunner } from "./runner.ts";
import { ServerClock } from "./server-clock.ts";
import { rowSession } from "./row-session.ts";
import { rulesWork } from "./rules-work.ts";
import { Notifier } from "./notifier.ts";

export interface RemoteStoreOptions extends OpenOptions {
  /** Concurrent write transactions; lists that arrive meanwhile share the next one. */
  readonly writeConnections?: number;
  /** From this many pending writes on, a second transaction is started. */
  readonly overlapFrom?: number;
  readonly readConnections?: number;
  /** Whether transactions use cached rows and let the commit verify them. */
  readonly optimistic?: boolean;
  /** How long calls to an unreachable database are retried. */
  readonly retryForMs?: number;
}

export const WRITE_CONNECTIONS = 2;
/** Measured: see bench/README.md. */
export const OVERLAP_FROM = 32;
const READ_CONNECTIONS = 2;
export const USER_CONNECTIONS = 4;
/** Clock measurements at open: the fastest round trip is the most precise. */
const MEASUREMENTS = 3;
/** Rows of dead writers are kept this long. */
const KEEP_WRITERS_MS = 30 * 86_400_000;

export class RemoteSession {
  readonly backend: Backend;
  readonly options: RemoteStoreOptions;
  readonly pool: ConnectionPool;
  readonly reader: Reader;
  readonly runner: TransactionRunner;
  readonly batches: Batches;
  readonly cache = new RowCache();
  readonly history: History;
  readonly notifier: Notifier;
  readonly clock: StoreClock;
  readonly #serverClock: ServerClock | undefined;
  readonly #retryForMs: number;
  readonly #numbers: NumberAllocator[] = [];
  #cipher: PayloadCipher | undefined;
  #contents: Contents;

  private constructor(backend: Backend, options: RemoteStoreOptions) {
    const {
      writeConnections = WRITE_CONNECTIONS,
      readConnections = READ_CONNECTIONS,
      optimistic = true,
      retryForMs = RETRY_FOR_MS,
    } = options;
    this.backend = backend;
    this.options = options;
    this.#retryForMs = retryForMs;
    this.#contents = new Contents(options.random, false);
    this.history = new History({
      random: options.random,
      now: () => this.now(),
      monotonic: () => options.clock.monotonic(),
      forget: (kept) => {
        this.cache.clear();
        this.#contents.clear();
        for (const numbers of this.#numbers) numbers.drop();
        this.pool.dropAll(kept);
      },
      record:
        options.readOnly === true
          ? undefined
          : (change) => this.runner.run({ ...rulesWork("Recording the history of the store", change), isUrgent: true }),
      readIncarnation: () => this.control(readIncarnation),
    });
    const sizes = {
      write: writeConnections,
      claim: 1,
      read: readConnections,
      heartbeat: 1,
      control: 1,
      user: USER_CONNECTIONS,
    };
    this.pool = new ConnectionPool(backend, sizes, this.history);
    this.#serverClock = options.time === "given" ? undefined : new ServerClock(options.clock);
    this.clock = new StoreClock(this.#serverClock ?? options.clock, 0);
    this.notifier = new Notifier(backend, this.pool, options);
    const cipher = (): PayloadCipher | undefined => this.#cipher;
    const contents = (): Contents => this.#contents;
    this.reader = new Reader(this.pool, readConnections, options, retryForMs, cipher, contents);
    this.runner = new TransactionRunner({
      clock: options.clock,
      timers: options.timers,
      random: options.random,
      pool: this.pool,
      resolver: new CommitResolver(backend, this.pool, this.history, options, retryForMs),
      cache: this.cache,
      runNumbers: this.numbers("runs"),
      isOptimistic: optimistic,
      retryForMs,
      isReadOnly: options.readOnly === true,
      cipher,
      contents,
      now: () => this.now(),
      committed: (changes) => {
        this.notifier.committed(changes);
        for (const { change, table, rows } of changes)
          if (change === "delete" && table === "runs")
            this.outside?.runsDeleted(rows.map((row) => row["run"] as RunNumber));
      },
    });
    this.batches = new Batches(this.runner, this.reader, this.history, () => this.now(), writeConnections);
  }

  static async open(backend: Backend, options: RemoteStoreOptions): Promise<RemoteSession> {
    const session = new RemoteSession(backend, options);
    try {
      const first = options.readOnly === true ? "read" : "write";
      await withRetry(options, "Opening the store", () => session.pool.open(first), options.retryForMs);
      await session.#begin();
      return session;
    } catch (error) {
      await session.pool.close();
      await backend.close().catch(() => undefined);
      throw error;
    }
  }

  async #begin(): Promise<void> {
    for (let count = 0; count < MEASUREMENTS; count += 1) await this.#measureClock();
    await this.#raiseClock();
    await this.history.begin();
    const { codec, locked = false, readOnly = false } = this.options;
    const { location } = await this.control((connection) => this.backend.info(connection));
    const notes = await readCodecNotes(this.reader);
    this.cache.isFederated = await this.reader.withRows("Opening the store", isFederated);
    this.#cipher = openPayloadCipher(notes, location, codec, locked, (...given) => new PayloadCipher(...given));
    this.#contents = new Contents(this.options.random, this.#cipher !== undefined);
    // outside-contents.O1
    this.#contents.outside = await OutsideContents.open(rowSession(this), {
      ports: this.options,
      cipher: () => this.#cipher,
      given: this.options.contents,
      isReadOnly: readOnly,
    });
    if (readOnly) return;
    if (this.#cipher?.isUnlocked === true && !notes.some(({ name }) => name === this.#cipher!.codec.name))
      await this.#recordCodec(this.#cipher);
    await this.#deleteOldWriters();
    await this.notifier.listen();
  }

  get outside(): OutsideContents | undefined {
    return this.#contents.outside;
  }

  get cipher(): PayloadCipher | undefined {
    return this.#cipher;
  }

  now(): EpochMs {
    return this.clock.now();
  }

  numbers(counter: string): NumberAllocator {
    const numbers = new NumberAllocator(this.options.clock, (count) => {
      if (this.options.readOnly === true) refuseWrite("Reserving numbers");
      return this.control((connection) => this.backend.reserve(connection, counter, count, leastNumberAt(this.now())));
    });
    this.#numbers.push(numbers);
    return numbers;
  }

  /** One call outside a transaction. */
  control<T>(
    call: (connection: Parameters<Backend["info"]>[0]) => Promise<T>,
    use: ConnectionUse = "control",
  ): Promise<T> {
    return withRetry(
      this.options,
      "Querying the database",
      () => this.pool.use(use, ({ connection }) => call(connection)),
      this.#retryForMs,
    );
  }

  /** remote.N1. Call it before a lease is checked or granted: a lease from a slow clock would seem expired to other processes. */
  async catchUp(): Promise<void> {
    if (this.#serverClock === undefined) await this.#raiseClock();
    else await this.#measureClock();
  }

  async #measureClock(): Promise<void> {
    await this.#serverClock?.measure(() =>
      this.control((connection) => this.backend.serverTime(connection), "heartbeat"),
    );
  }

  async #raiseClock(): Promise<void> {
    const [[row] = []] = await this.control(
      (connection) => connection.read([{ kind: "count", table: "writers", where: [], most: "mark" }]),
      "heartbeat",
    );
    const mark = row?.["most"];
    if (typeof mark === "number") this.clock.raise(mark);
  }

  /** Records the codec: from now on every process that opens the store must have it. */
  async #recordCodec(cipher: PayloadCipher): Promise<void> {
    const key = CODEC_KEY_PREFIX + cipher.codec.name;
    await this.runner.run(
      rulesWork("Opening the store", ({ rows }) => {
        rows.add("meta", { key, value: cipher.probe() });
      }),
    );
  }

  async #deleteOldWriters(): Promise<void> {
    const old = await this.reader.rows("Opening the store", {
      kind: "select",
      table: "writers",
      where: [
        { column: "mark", is: ">", value: 0 },
        { column: "mark", is: "<", value: this.now() - KEEP_WRITERS_MS },
      ],
      limit: 100,
      lock: "none",
    });
    if (old.length > 0) await this.#deleteWriters(old.map(({ writer }) => writer));
  }

  async #deleteWriters(writers: readonly string[]): Promise<void> {
    this.history.forgetWriters(writers);
    await this.runner.run(
      rulesWork("Closing the store", ({ rows }) => {
        for (const writer of writers) rows.remove("writers", [writer]);
      }),
    );
  }

  /** remote.N2 */
  async close(): Promise<void> {
    if (this.pool.isClosed) return;
    await this.outside?.close();
    await this.batches.drained();
    await this.notifier.close();
    const writers = await this.pool.closeOthers("claim");
    if (writers.length > 0 && this.options.readOnly !== true) await this.#deleteWriters(writers).catch(() => undefined);
    await this.pool.close();
    await this.backend.close();
  }

  refuseClosed(): void {
    if (this.pool.isClosed) throw new RepriseError("USAGE", "The store is closed. Open it again before you use it.");
  }
}
