// Workload: clients that start runs and record what was acknowledged, and the check of these records afterwards.

import { isDeepStrictEqual } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, RepriseError, type Client } from "reprise";
import { decode } from "../../src/base/index.ts";
import { findJournalFault, isTerminal, type Store } from "../../src/kernel/index.ts";
import { expectedOf, load } from "../slow/sigkill/definitions.ts";
import { anyTransfer, auditBank, bankOn, foundBank } from "./bank.ts";
import { definitionsOf } from "./definitions.ts";
import { openStore, type Subject } from "./subject.ts";
import type { Tally, World } from "./rig.ts";

/** The store is unreachable, busy or full: a retry succeeds when it is back. */
export function isStoreTrouble(error: unknown): boolean {
  return error instanceof RepriseError && error.code.startsWith("STORE_");
}

/** Retries while the store is unavailable. */
export async function insist<T>(ask: () => Promise<T>, trouble: (error: unknown) => void = () => {}): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isStoreTrouble(error)) throw error;
      trouble(error);
      await sleep(50);
    }
  }
}

export const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

export async function openClient(url: string): Promise<Client<any>> {
  return createClient({ store: url, definitions: definitionsOf(url), logger: SILENT });
}

export interface LoadOptions {
  /** Concurrent runs of `load`. */
  readonly loads?: number;
  readonly transfers?: number;
  /** The clients' address, if different from the store's. */
  readonly clientUrl?: string;
}

const LIMIT = "300 s";

/** A steady load: each feeder has one active run. The goal is faults under load, not a long queue. */
export class Workload implements AsyncDisposable {
  readonly #world: World;
  readonly #subject: Subject;
  readonly #client: Client<any>;
  readonly #loads: { readonly id: string; readonly n: number }[] = [];
  readonly #transfers: string[] = [];
  #feeding: Promise<void>[] = [];
  #stop = false;
  #next = 0;

  private constructor(world: World, subject: Subject, client: Client<any>) {
    this.#world = world;
    this.#subject = subject;
    this.#client = client;
  }

  static async begin(world: World, subject: Subject, options: LoadOptions = {}): Promise<Workload> {
    const client = await openClient(options.clientUrl ?? subject.url);
    await foundBank(subject);
    const work = new Workload(world, subject, client);
    work.#feeding = [
      ...Array.from({ length: options.loads ?? 24 }, () => work.#feedLoads()),
      ...Array.from({ length: options.transfers ?? 8 }, () => work.#feedTransfers()),
    ];
    // `finish` reports its failure.
    for (const each of work.#feeding) each.catch(() => undefined);
    return work;
  }

  get acknowledged(): number {
    return this.#loads.length + this.#transfers.length;
  }

  readonly #trouble = (): void => this.#world.tally.add("errors answered to clients");

  async #feedLoads(): Promise<void> {
    while (!this.#stop) {
      const n = this.#next++;
      const id = `load-${n}`;
      const run = await insist(() => this.#client.start(load, n, { id }), this.#trouble);
      this.#loads.push({ id, n });
      await insist(() => run.resolve("go", n + 1).catch(unlessSettled), this.#trouble);
      await insist(() => run.result({ timeout: LIMIT }), this.#trouble);
    }
  }

  async #feedTransfers(): Promise<void> {
    const transfer = bankOn(this.#subject.kind);
    while (!this.#stop) {
      const id = `transfer-${this.#next++}`;
      const input = anyTransfer(this.#world.chance);
      const run = await insist(() => this.#client.start(transfer, input, { id }), this.#trouble);
      this.#transfers.push(id);
      await insist(() => run.result({ timeout: LIMIT }), this.#trouble);
    }
  }

  /** Starts no new runs; resolves when all runs have ended. */
  async finish(): Promise<void> {
    this.#stop = true;
    await Promise.all(this.#feeding);
  }

  /** Checks the store after all workers have stopped: every invariant in the data, and every acknowledged run. */
  async check(): Promise<void> {
    const { tally } = this.#world;
    tally.add("acknowledged", this.acknowledged);
    const store = await openStore(this.#subject);
    try {
      for (const { invariant, run, message } of await store.check())
        tally.broken(`${invariant}: ${run ?? ""} ${message}`);
      for (const { id, n } of this.#loads) await checkRun(store, id, expectedOf(n, n + 1), tally);
      for (const id of this.#transfers) await checkRun(store, id, id, tally);
      await auditBank(this.#subject, this.#transfers, tally);
    } finally {
      await store.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop = true;
    await this.#client.close();
  }
}

/** The response to the first attempt was lost, but the request had been applied. */
function unlessSettled(error: unknown): void {
  const isThere = error instanceof RepriseError && ["PROMISE_ALREADY_RESOLVED", "RUN_ENDED"].includes(error.code);
  if (!isThere) throw error;
}

/** Checks an acknowledged run: it exists, has the expected result, and each of its steps was committed once. */
export async function checkRun(store: Store, id: string, expected: unknown, tally: Tally): Promise<void> {
  const record = await store.findRun(id);
  if (record === undefined) return tally.lost(`run ${id}`);
  const entries = await store.readJournal(record.run, 0);
  const fault = findJournalFault(entries, record);
  if (fault !== undefined) tally.broken(`the journal of ${id}: ${fault.problem}`);
  const settled = entries.filter(({ type, command }) => isTerminal(type) && command !== "");
  const twice = Map.groupBy(settled, ({ command }) => command);
  for (const [command, ends] of twice) if (ends.length > 1) tally.doubled(`${command} of ${id}`);
  tally.add("steps", settled.length);
  const last = entries.at(-1);
  if (last?.type !== "RunCompleted") return tally.lost(`the end of ${id}, which is ${record.status}`);
  const { output } = decode(last.data) as { readonly output?: unknown };
  if (!isDeepStrictEqual(output, expected)) tally.lost(`the result of ${id}: ${JSON.stringify(output)}`);
}
