// Orders: runs whose every value contains the run's mark, clients that wait for each run, and the checks after the
// database has lost history: the client of a lost run got an error that names it, and no run has data of another.

import { isDeepStrictEqual } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, RepriseError, type Client, type Run } from "reprise";
import type { Store } from "../../src/kernel/index.ts";
import { order, ORDERS, resultOf } from "./order-definitions.ts";
import { openStore } from "./subject.ts";
import { checkRun, insist, isStoreTrouble, SILENT } from "./workload.ts";
import type { World } from "./rig.ts";

const MARK = /order-\d+/g;
const CLIENTS = 2;
const FEEDERS = 16;
/** After this time without a result a client repeats its signal: a rollback may have lost it. */
const SIGNAL_TIMEOUT = "2 s";
/** A client that has waited this long has seen the run. */
const SEEN_AFTER_MS = 1_000;
/** How long a rollback may take to be detected, and how much the clock of a server may differ. */
const CLOCK_MS = 5_000;
/** The time limit of a run. */
const LIMIT_MS = 45_000;

/** A run as its client knows it. */
interface Known {
  /** By `performance.now()`; undefined until its start is acknowledged. */
  acknowledgedAt?: number;
  /** The number of rollbacks when its signal was acknowledged: it is repeated only after another one. */
  signaledAfterCut?: number;
  /** The client got an error that the run is lost. */
  isGone?: boolean;
  /** The client got the result. */
  isAnswered?: boolean;
}

export class OrderLoad implements AsyncDisposable {
  readonly #world: World;
  readonly #url: string;
  readonly #clients: Client<any>[] = [];
  readonly #known = new Map<string, Known>();
  #feeding: Promise<void>[] = [];
  #stop = false;
  #isOver = false;
  #next = 0;
  /** The interval of the last rollback, by `performance.now()`. */
  #cutSince = Number.NEGATIVE_INFINITY;
  #lastCutAt = Number.NEGATIVE_INFINITY;
  /** Counts the starts and the ends of rollbacks: a response between two counts may be from before or after. */
  #cuts = 0;

  private constructor(world: World, url: string) {
    this.#world = world;
    this.#url = url;
  }

  static async begin(world: World, url: string): Promise<OrderLoad> {
    const load = new OrderLoad(world, url);
    for (let n = 0; n < CLIENTS; n += 1)
      load.#clients.push(await createClient({ store: url, definitions: ORDERS, logger: SILENT }));
    load.#feeding = Array.from({ length: FEEDERS }, (_, n) => load.#feed(load.#clients[n % CLIENTS]!));
    // `finish` reports its failure.
    for (const each of load.#feeding) each.catch(() => undefined);
    return load;
  }

  get acknowledged(): number {
    return [...this.#known.values()].filter(({ acknowledgedAt }) => acknowledgedAt !== undefined).length;
  }

  /** Rolls history back: everything acknowledged until its end may be lost. */
  async cut(goBack: () => Promise<unknown>): Promise<void> {
    this.#cutSince = performance.now();
    this.#cuts += 1;
    await goBack();
    this.#lastCutAt = performance.now();
    this.#cuts += 1;
    this.#world.tally.add("cuts");
  }

  async #feed(client: Client<any>): Promise<void> {
    while (!this.#stop) {
      const id = `order-${this.#next++}`;
      const known: Known = {};
      this.#known.set(id, known);
      const cuts = this.#cuts;
      const run = await insist(() => client.start(order, id, { id }), this.#trouble);
      // A response during a rollback proves nothing.
      if (cuts === this.#cuts) known.acknowledgedAt = performance.now();
      await this.#world.sometime(0, 250);
      await this.#untilEnded(run, id, known);
    }
  }

  readonly #trouble = (): void => this.#world.tally.add("errors answered to clients");

  /** Waits for the result, and repeats the signal after a rollback. */
  async #untilEnded(run: Run<typeof order>, id: string, known: Known): Promise<void> {
    const giveUpAt = performance.now() + LIMIT_MS;
    for (;;) {
      try {
        if (known.signaledAfterCut !== this.#cuts) await this.#tell(run, id, known);
      } catch (error) {
        if (isCode(error, "RUN_NOT_FOUND")) return this.#gone(known, undefined);
        if (!isCode(error, "RUN_ENDED") && !isStoreTrouble(error)) throw error;
      }
      const askedAt = performance.now();
      try {
        const result = await run.result({ timeout: SIGNAL_TIMEOUT });
        known.isAnswered = true;
        if (!isDeepStrictEqual(result, resultOf(id)))
          this.#world.tally.broken(`the client of ${id} got ${JSON.stringify(result)}`);
        return;
      } catch (error) {
        if (isCode(error, "STORE_ROLLED_BACK")) return this.#gone(known, { id, message: (error as Error).message });
        // Requested after the rollback: this call never saw the run.
        const isNew = known.acknowledgedAt === undefined || askedAt > this.#cutSince - SEEN_AFTER_MS;
        if (isCode(error, "RUN_NOT_FOUND") && isNew) return this.#gone(known, undefined);
        if (this.#isOver) return;
        if (!isCode(error, "RESULT_TIMEOUT") && !isStoreTrouble(error)) {
          this.#world.tally.broken(`the client of ${id} got: ${String(error)}`);
          return;
        }
        if (performance.now() > giveUpAt) {
          this.#world.tally.broken(`the client of ${id} got no result: ${String(error)}`);
          return;
        }
        await sleep(20);
      }
    }
  }

  async #tell(run: Run<typeof order>, id: string, known: Known): Promise<void> {
    const cuts = this.#cuts;
    await run.signal("go", `notified ${id}`, { dedupId: "go" });
    known.signaledAfterCut = cuts;
  }

  #gone(known: Known, named: { readonly id: string; readonly message: string } | undefined): void {
    known.isGone = true;
    this.#world.tally.add(
      named === undefined ? "lost runs, found by another request" : "lost runs, reported to their clients",
    );
    if (named !== undefined && !named.message.includes(named.id))
      this.#world.tally.broken(`the error for ${named.id} does not name it: ${named.message}`);
  }

  /** Starts no new runs; resolves when every client has its result. */
  async finish(): Promise<void> {
    this.#stop = true;
    await Promise.all(this.#feeding);
    // After a rollback, ended runs may wait for their signal again: their clients are done, so another client repeats it.
    const [client] = this.#clients as [Client<any>];
    const left = [...this.#known].filter(
      ([, { isGone, signaledAfterCut }]) => isGone !== true && signaledAfterCut !== this.#cuts,
    );
    await Promise.all(left.map(([id, known]) => this.#untilEnded(client.get(order, id), id, { ...known })));
  }

  /** Checks the store after all workers have stopped. */
  async check(): Promise<void> {
    const { tally } = this.#world;
    tally.add("acknowledged", this.acknowledged);
    const store = await openStore({ url: this.#url });
    try {
      for (const { invariant, run, message } of await store.check())
        tally.broken(`${invariant}: ${run ?? ""} ${message}`);
      for (const [id, known] of this.#known) await this.#checkOne(store, id, known);
      await this.#checkMarks(store);
      await this.#checkHistory(store);
    } finally {
      await store.close();
    }
  }

  async #checkOne(store: Store, id: string, { acknowledgedAt, isGone, isAnswered }: Known): Promise<void> {
    const { tally } = this.#world;
    const record = await store.findRun(id);
    if (record !== undefined) {
      if (isGone === true) tally.broken(`run ${id} was reported as lost, but exists`);
      else await checkRun(store, id, resultOf(id), tally);
      return;
    }
    if (acknowledgedAt === undefined) return;
    if (acknowledgedAt > this.#lastCutAt) tally.lost(`run ${id}, acknowledged after the last rollback`);
    else if (isGone !== true && isAnswered !== true) tally.broken(`run ${id} is lost, and no client got an error`);
    else if (isAnswered === true) tally.add("runs lost after their result was returned");
  }

  /** As `reprise doctor` reports it: that history went back, and when. */
  async #checkHistory(store: Store): Promise<void> {
    if (this.#cuts === 0) return;
    const last = (await store.readHistory()).find(({ kind }) => kind === "rolled_back");
    if (last === undefined) return this.#world.tally.broken("the store has no record that history went back");
    const sinceMs = Date.now() - (performance.now() - this.#lastCutAt);
    if (last.at < sinceMs - CLOCK_MS)
      this.#world.tally.broken(`the store says ${new Date(last.at).toISOString()}, the last rollback was later`);
  }

  /** Every journal, also of children, contains one mark. */
  async #checkMarks(store: Store): Promise<void> {
    for (let before: number | undefined; ;) {
      const page = await store.listRuns({ limit: 500, ...(before !== undefined && { before }) });
      for (const { run, id } of page) {
        const journal = await store.readJournal(run, 0);
        const marks = new Set(journal.flatMap(({ data }) => data.match(MARK) ?? []));
        if (marks.size > 1) this.#world.tally.broken(`run ${id} contains data of ${[...marks].join(" and ")}`);
      }
      if (page.length < 500) return;
      before = page.at(-1)!.run;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop = this.#isOver = true;
    await Promise.all(this.#clients.map((client) => client.close()));
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof RepriseError && error.code === code;
}
