// Orders: runs whose every value bears the run's own mark, clients who wait for each of them, and the check of both when the
// database has lost history meanwhile: what is lost was named to whoever waited for it, and nothing is mixed.

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
/** A client who waits in vain for so long repeats its signal: history may have taken it back. */
const SIGNAL_TIMEOUT = "2 s";
/** Whoever has waited for so long has seen the run. */
const SEEN_AFTER_MS = 1_000;
/** How long a cut may take after it has happened, and how much the clock of a server may differ. */
const CLOCK_MS = 5_000;
/** A run that has not ended by then never does. */
const LIMIT_MS = 45_000;

/** What a client knows of a run. */
interface Known {
  /** By `performance.now()`; undefined while it is not acknowledged. */
  acknowledgedAt?: number;
  /** How many cuts there had been when its signal was acknowledged: it is repeated only after another. */
  signaledAfterCut?: number;
  /** It was told that the run is gone. */
  isGone?: boolean;
  /** It was given the result. */
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
  /** When the database last went back, by `performance.now()`: not before the one, not after the other. */
  #cutSince = Number.NEGATIVE_INFINITY;
  #lastCutAt = Number.NEGATIVE_INFINITY;
  /** Counts the beginnings and the ends of cuts: what is between two counts may be on either side. */
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
    // Whoever fails is heard by `finish`.
    for (const each of load.#feeding) each.catch(() => undefined);
    return load;
  }

  get acknowledged(): number {
    return [...this.#known.values()].filter(({ acknowledgedAt }) => acknowledgedAt !== undefined).length;
  }

  /** History goes back: what was acknowledged until the end of it may be lost. */
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
      // An answer that came across a cut says nothing.
      if (cuts === this.#cuts) known.acknowledgedAt = performance.now();
      await this.#world.sometime(0, 250);
      await this.#untilEnded(run, id, known);
    }
  }

  readonly #trouble = (): void => this.#world.tally.add("errors answered to clients");

  /** Waits for the end, and repeats the signal after a cut. */
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
          this.#world.tally.broken(`whoever waited for ${id} was given ${JSON.stringify(result)}`);
        return;
      } catch (error) {
        if (isCode(error, "STORE_ROLLED_BACK")) return this.#gone(known, { id, message: (error as Error).message });
        // Asked after the cut: this question knows of no run that was there.
        const isNew = known.acknowledgedAt === undefined || askedAt > this.#cutSince - SEEN_AFTER_MS;
        if (isCode(error, "RUN_NOT_FOUND") && isNew) return this.#gone(known, undefined);
        if (this.#isOver) return;
        if (!isCode(error, "RESULT_TIMEOUT") && !isStoreTrouble(error)) {
          this.#world.tally.broken(`whoever waited for ${id} was told: ${String(error)}`);
          return;
        }
        if (performance.now() > giveUpAt) {
          this.#world.tally.broken(`nobody answered whoever waits for ${id}: ${String(error)}`);
          return;
        }
        await sleep(20);
      }
    }
  }

  async #tell(run: Run<typeof order>, id: string, known: Known): Promise<void> {
    const cuts = this.#cuts;
    await run.signal("go", `told ${id}`, { dedupId: "go" });
    known.signaledAfterCut = cuts;
  }

  #gone(known: Known, named: { readonly id: string; readonly message: string } | undefined): void {
    known.isGone = true;
    this.#world.tally.add(
      named === undefined ? "runs gone, found so by another question" : "runs gone, named to their clients",
    );
    if (named !== undefined && !named.message.includes(named.id))
      this.#world.tally.broken(`whoever waited for ${named.id} was told: ${named.message}`);
  }

  /** Nothing new is started; resolves when every client has its answer. */
  async finish(): Promise<void> {
    this.#stop = true;
    await Promise.all(this.#feeding);
    // Runs that had ended may wait for their signal again: their clients are gone, so one more client repeats it.
    const [client] = this.#clients as [Client<any>];
    const left = [...this.#known].filter(
      ([, { isGone, signaledAfterCut }]) => isGone !== true && signaledAfterCut !== this.#cuts,
    );
    await Promise.all(left.map(([id, known]) => this.#untilEnded(client.get(order, id), id, { ...known })));
  }

  /** When nobody works any more. */
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
      if (isGone === true) tally.broken(`run ${id} was said to be gone, and is there`);
      else await checkRun(store, id, resultOf(id), tally);
      return;
    }
    if (acknowledgedAt === undefined) return;
    if (acknowledgedAt > this.#lastCutAt) tally.lost(`run ${id}, acknowledged after the last cut`);
    else if (isGone !== true && isAnswered !== true) tally.broken(`run ${id} is gone, and nobody said so`);
    else if (isAnswered === true) tally.add("runs gone after their result was given");
  }

  /** As `reprise doctor` says it: that history went back, and when. */
  async #checkHistory(store: Store): Promise<void> {
    if (this.#cuts === 0) return;
    const last = (await store.readHistory()).find(({ kind }) => kind === "rolled_back");
    if (last === undefined) return this.#world.tally.broken("the store does not say that history went back");
    const sinceMs = Date.now() - (performance.now() - this.#lastCutAt);
    if (last.at < sinceMs - CLOCK_MS)
      this.#world.tally.broken(`the store says ${new Date(last.at).toISOString()}, the last cut was later`);
  }

  /** Every journal, those of children, too, bears one mark. */
  async #checkMarks(store: Store): Promise<void> {
    for (let before: number | undefined; ;) {
      const page = await store.listRuns({ limit: 500, ...(before !== undefined && { before }) });
      for (const { run, id } of page) {
        const journal = await store.readJournal(run, 0);
        const marks = new Set(journal.flatMap(({ data }) => data.match(MARK) ?? []));
        if (marks.size > 1) this.#world.tally.broken(`run ${id} mixes ${[...marks].join(" and ")}`);
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
