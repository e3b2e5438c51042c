// Session: the parts of an open store behind a network, put together; its time, and its lines in `writers`.
//
// N1. Time is the server's (`server`), or that of the given clock, raised to whatever any writer has written (`given`); it
//     never goes backwards (../rules/clock.ts).
// N2. A link's line in `writers` is removed when the link is closed in good order. One whose last commit is in doubt stays:
//     it says what became of it.

import { RepriseError, type EpochMs } from "../../base/index.ts";
import { leastNumberAt } from "../../kernel/index.ts";
import { StoreClock } from "../rules/clock.ts";
import { CODEC_NOTE, openSeal, Seal } from "../seal.ts";
import type { OpenOptions } from "../source.ts";
import type { Backend } from "./backend.ts";
import { Batches } from "./batches.ts";
import { readCodecNotes } from "./describe.ts";
import { History } from "./history.ts";
import { Links, type Lane } from "./links.ts";
import { Memory } from "./memory.ts";
import { Numbers } from "./numbers.ts";
import { Outcomes } from "./outcomes.ts";
import { patiently, PATIENCE_MS } from "./patience.ts";
import { Reader } from "./reader.ts";
import { Runner } from "./runner.ts";
import { ServerClock } from "./server-clock.ts";
import { spoken } from "./spoken.ts";
import { WakeUps } from "./wake-ups.ts";

export interface RemoteStoreOptions extends OpenOptions {
  /** Transactions that write at the same time; what comes meanwhile shares the next one. */
  readonly writeLinks?: number;
  /** How many writes make it worth while to have a second transaction under way. */
  readonly overlapFrom?: number;
  readonly readLinks?: number;
  /** Whether rows this process wrote last are taken for granted until a commit says otherwise. */
  readonly optimistic?: boolean;
  /** How long a database that cannot be reached is waited for. */
  readonly patienceMs?: number;
}

export const WRITE_LINKS = 2;
/** Measured: see bench/README.md. */
export const OVERLAP_FROM = 32;
const READ_LINKS = 2;
export const USER_LINKS = 4;
/** Asked at open: the quickest of some is the best. */
const MEASUREMENTS = 3;
/** Lines of writers that died are kept this long. */
const KEEP_WRITERS_MS = 30 * 86_400_000;

export class Session {
  readonly backend: Backend;
  readonly options: RemoteStoreOptions;
  readonly links: Links;
  readonly reader: Reader;
  readonly runner: Runner;
  readonly batches: Batches;
  readonly memory = new Memory();
  readonly history: History;
  readonly wakeUps: WakeUps;
  readonly clock: StoreClock;
  readonly #serverClock: ServerClock | undefined;
  readonly #patienceMs: number;
  readonly #numbers: Numbers[] = [];
  #seal: Seal | undefined;

  private constructor(backend: Backend, options: RemoteStoreOptions) {
    const { writeLinks = WRITE_LINKS, readLinks = READ_LINKS, optimistic = true, patienceMs = PATIENCE_MS } = options;
    this.backend = backend;
    this.options = options;
    this.#patienceMs = patienceMs;
    this.history = new History({
      random: options.random,
      now: () => this.now(),
      monotonic: () => options.clock.monotonic(),
      forget: (kept) => {
        this.memory.clear();
        for (const numbers of this.#numbers) numbers.drop();
        this.links.dropAll(kept);
      },
      record: (change) =>
        this.runner.run({
          ...spoken("Noting the history of the store", (_tx, ws) => change(ws)),
          isUrgent: true,
        }),
    });
    const sizes = { write: writeLinks, claim: 1, read: readLinks, beat: 1, small: 1, user: USER_LINKS };
    this.links = new Links(backend, sizes, this.history);
    this.#serverClock = options.time === "given" ? undefined : new ServerClock(options.clock);
    this.clock = new StoreClock(this.#serverClock ?? options.clock, 0);
    this.wakeUps = new WakeUps(backend, this.links, options);
    const seal = (): Seal | undefined => this.#seal;
    this.reader = new Reader(this.links, readLinks, options, patienceMs, seal);
    this.runner = new Runner({
      clock: options.clock,
      timers: options.timers,
      random: options.random,
      links: this.links,
      outcomes: new Outcomes(backend, this.links, this.history, options, patienceMs),
      memory: this.memory,
      runNumbers: this.numbers("runs"),
      isQuick: optimistic,
      patienceMs,
      seal,
      now: () => this.now(),
      committed: (changes) => this.wakeUps.committed(changes),
    });
    this.batches = new Batches(this.runner, this.reader, this.history, () => this.now(), writeLinks);
  }

  static async open(backend: Backend, options: RemoteStoreOptions): Promise<Session> {
    const session = new Session(backend, options);
    try {
      await patiently(options, "Opening the store", () => session.links.open(), options.patienceMs);
      await session.#begin();
      return session;
    } catch (error) {
      await session.links.close();
      await backend.close().catch(() => undefined);
      throw error;
    }
  }

  async #begin(): Promise<void> {
    for (let count = 0; count < MEASUREMENTS; count += 1) await this.#measure();
    await this.#raise();
    await this.history.begin();
    const { codec, locked = false } = this.options;
    const { location } = await this.small((link) => this.backend.info(link));
    const notes = await readCodecNotes(this.reader);
    this.#seal = openSeal(notes, location, codec, locked, (...given) => new Seal(...given));
    if (this.#seal?.isOpen === true && !notes.some(({ name }) => name === this.#seal!.codec.name))
      await this.#noteCodec(this.#seal);
    await this.#forgetOldWriters();
    await this.wakeUps.listen();
  }

  get seal(): Seal | undefined {
    return this.#seal;
  }

  now(): EpochMs {
    return this.clock.now();
  }

  numbers(counter: string): Numbers {
    const numbers = new Numbers(this.options.clock, (count) =>
      this.small((link) => this.backend.reserve(link, counter, count, leastNumberAt(this.now()))),
    );
    this.#numbers.push(numbers);
    return numbers;
  }

  /** One call outside of any transaction. */
  small<T>(call: (link: Parameters<Backend["info"]>[0]) => Promise<T>, lane: Lane = "small"): Promise<T> {
    return patiently(
      this.options,
      "Asking the database",
      () => this.links.use(lane, ({ link }) => call(link)),
      this.#patienceMs,
    );
  }

  /** N1. Before a lease is judged or given: one that is short of the time others have looks expired to them at once. */
  async catchUp(): Promise<void> {
    if (this.#serverClock === undefined) await this.#raise();
    else await this.#measure();
  }

  async #measure(): Promise<void> {
    await this.#serverClock?.measure(() => this.small((link) => this.backend.serverTime(link), "beat"));
  }

  async #raise(): Promise<void> {
    const [[row] = []] = await this.small(
      (link) => link.read([{ ask: "count", table: "writers", where: [], most: "mark" }]),
      "beat",
    );
    const mark = row?.["most"];
    if (typeof mark === "number") this.clock.raise(mark);
  }

  /** From now on whoever opens the store must be able to read what this codec writes. */
  async #noteCodec(seal: Seal): Promise<void> {
    const key = CODEC_NOTE + seal.codec.name;
    await this.runner.run(
      spoken("Opening the store", (_tx, ws) => {
        if (ws.get("meta", "update", key) === undefined) ws.insert("meta", { key, value: seal.probe() });
      }),
    );
  }

  async #forgetOldWriters(): Promise<void> {
    const old = await this.reader.rows("Opening the store", {
      ask: "select",
      table: "writers",
      where: [
        { column: "mark", is: ">", value: 0 },
        { column: "mark", is: "<", value: this.now() - KEEP_WRITERS_MS },
      ],
      limit: 100,
      lock: "none",
    });
    if (old.length > 0) await this.#dropWriters(old.map(({ writer }) => writer));
  }

  async #dropWriters(writers: readonly string[]): Promise<void> {
    await this.runner.run(
      spoken("Closing the store", (_tx, ws) => {
        const keys = writers.toSorted().map((writer) => [writer] as const);
        ws.need(() => ws.wantRows("writers", "update", keys));
        for (const [writer] of keys) {
          const row = ws.get("writers", "update", writer);
          if (row !== undefined) ws.remove("writers", row);
        }
      }),
    );
  }

  /** N2 */
  async close(): Promise<void> {
    if (this.links.isClosed) return;
    await this.batches.drained();
    await this.wakeUps.close();
    const writers = await this.links.closeOthers("claim");
    if (writers.length > 0) await this.#dropWriters(writers).catch(() => undefined);
    await this.links.close();
    await this.backend.close();
  }

  refuseClosed(): void {
    if (this.links.isClosed) throw new RepriseError("USAGE", "The store is closed.");
  }
}
