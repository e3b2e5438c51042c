// Lost history: a database loses committed history while workers and clients use it. Clients that wait for lost runs get
// STORE_ROLLED_BACK, and no run ends with another run's data. The same tests for each store.

import { expect, test } from "vitest";
import { createClient, createEngine, signal, workflow, type Client, type Run, type StoreSource } from "reprise";
import { storeOf } from "../../../src/stores/store-url.ts";
import { historyOf, type History } from "../../faults/history.ts";
import { openStore, openSubject, type StoreKind, type Subject } from "../../faults/subject.ts";
import { insist, SILENT } from "../../faults/workload.ts";
import { createGate, type Gate } from "../../engine/world.ts";

const TIMEOUT_MS = 120_000;
const LEASE_MS = 3_000;
const RUNS = 20;
/** Longer than any lease: a run that has not ended by then never does. */
const RESULT_TIMEOUT = "30 s";

class Shop implements AsyncDisposable {
  readonly subject: Subject;
  readonly history: History;
  readonly #engines: Client<any>[] = [];
  /** The gate of `charge`, by the run's card. */
  readonly gates = new Map<string, Gate>();
  readonly #order;

  private constructor(subject: Subject) {
    this.subject = subject;
    this.history = historyOf(subject.url, subject.folder);
    const charge = async (card: string): Promise<string> => {
      await this.gates.get(card)?.wait();
      return `charged ${card}`;
    };
    this.#order = workflow("order", { ports: { go: signal<string>() } }, async (ctx, card: string) => {
      const charged = await ctx.run("charge", card, (_op, given) => charge(given));
      const go = await ctx.receive("go");
      const shipped = await ctx.run("ship", () => `shipped to ${card}`);
      return [charged, go, shipped];
    });
  }

  static async open(kind: StoreKind): Promise<Shop> {
    return new Shop(await openSubject(kind));
  }

  async engine(works: boolean, store: StoreSource | string = this.subject.url): Promise<Client<any>> {
    const options = { store, definitions: [this.#order], logger: SILENT };
    const worker = { lease: LEASE_MS };
    const engine = await (works ? createEngine({ ...options, worker }) : createClient(options));
    this.#engines.push(engine);
    return engine;
  }

  start(client: Client<any>, card: string): Promise<Run<any>> {
    return insist(() => client.start(this.#order, card, { id: card }));
  }

  async go(client: Client<any>, card: string): Promise<void> {
    await insist(() => client.get(this.#order, card).signal("go", `go ${card}`, { dedupId: "go" }));
  }

  result(client: Client<any>, card: string): Promise<unknown> {
    return client.get(this.#order, card).result({ timeout: RESULT_TIMEOUT });
  }

  /** Resolves when each of these is charged and waits for `go`. */
  async charged(cards: readonly string[]): Promise<void> {
    const store = await openStore(this.subject);
    try {
      for (const card of cards)
        await expect
          .poll(async () => {
            const record = await store.findRun(card);
            const journal = record === undefined ? [] : await store.readJournal(record.run, 0);
            return journal.map(({ type }) => type);
          })
          .toContain("OperationCompleted");
    } finally {
      await store.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const gate of this.gates.values()) gate.open();
    await Promise.all(this.#engines.map((engine) => engine.close({ grace: "1s" }).catch(() => undefined)));
    await this.subject[Symbol.asyncDispose]();
  }
}

const resultOf = (card: string): unknown => [`charged ${card}`, `go ${card}`, `shipped to ${card}`];
const cardsOf = (letter: string): readonly string[] => Array.from({ length: RUNS }, (_, n) => `${letter}${n}`);

/** The result of each run, or the error's code and whether it names the run. */
async function answers(cards: readonly string[], ask: (card: string) => Promise<unknown>): Promise<unknown> {
  const settled = await Promise.allSettled(cards.map(ask));
  return Object.fromEntries(
    settled.map((each, index) => {
      const card = cards[index]!;
      if (each.status === "fulfilled") return [card, each.value];
      const { code, message } = each.reason as { readonly code?: string; readonly message: string };
      return [card, `${code ?? message}${message.includes(card) ? ` names ${card}` : ""}`];
    }),
  );
}

/** A store that waits for something before it first reads a journal, or the end of a run that has ended. */
function beforeJournals(url: string, first: () => Promise<void>): StoreSource {
  let once: Promise<void> | undefined;
  return {
    async "~open"(options) {
      const store = await storeOf(url)["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          if (key === "readJournal")
            return async (...asked: Parameters<typeof target.readJournal>) => {
              await (once ??= first());
              return target.readJournal(...asked);
            };
          if (key === "readEnd")
            return async (run: number) => {
              const end = await target.readEnd(run);
              if (end?.last === undefined) return end;
              await (once ??= first());
              return target.readEnd(run);
            };
          return value.bind(target) as unknown;
        },
      });
    },
  };
}

export function historyOn(kind: StoreKind): void {
  test("no run ends with the data of a run that the database lost", { timeout: TIMEOUT_MS }, async () => {
    await using shop = await Shop.open(kind);
    const client = await shop.engine(false);
    await shop.engine(true);
    await shop.engine(true);
    await shop.history.save();
    const [lost, later] = [cardsOf("x"), cardsOf("y")];
    const runs = new Map<string, Run<any>>();
    for (const card of lost) runs.set(card, await shop.start(client, card));
    await shop.charged(lost);
    const waiting = answers(lost, (card) => runs.get(card)!.result({ timeout: RESULT_TIMEOUT }));
    await shop.history.restore();
    for (const card of later) await shop.start(client, card);
    for (const card of later) await shop.go(client, card);
    const expected = Object.fromEntries(later.map((card) => [card, resultOf(card)]));
    expect(await answers(later, (card) => shop.result(client, card))).toEqual(expected);
    expect(await waiting).toEqual(Object.fromEntries(lost.map((card) => [card, `STORE_ROLLED_BACK names ${card}`])));
    const store = await openStore(shop.subject);
    expect(await store.check()).toEqual([]);
    await store.close();
  });

  test("a client that reads a run's end while it is lost gets STORE_ROLLED_BACK", { timeout: TIMEOUT_MS }, async () => {
    await using shop = await Shop.open(kind);
    await shop.engine(true);
    await shop.history.save();
    const client = await shop.engine(
      false,
      beforeJournals(shop.subject.url, () => shop.history.restore()),
    );
    await shop.start(client, "v");
    await shop.go(client, "v");
    expect(await answers(["v"], (card) => shop.result(client, card))).toEqual({ v: "STORE_ROLLED_BACK names v" });
  });

  test("a run whose claim survived and whose completion was lost runs again", { timeout: TIMEOUT_MS }, async () => {
    await using shop = await Shop.open(kind);
    const client = await shop.engine(false);
    await shop.engine(true);
    const gate = createGate();
    shop.gates.set("z", gate);
    await shop.start(client, "z");
    await shop.go(client, "z");
    await gate.reached;
    await shop.history.save();
    gate.open();
    expect(await shop.result(client, "z")).toEqual(resultOf("z"));
    await shop.history.restore();
    // Another client, which has read nothing before.
    const other = await shop.engine(false);
    expect(await shop.result(other, "z")).toEqual(resultOf("z"));
  });

  test(
    "workers whose registration was lost register again, each with a new number",
    { timeout: TIMEOUT_MS },
    async () => {
      await using shop = await Shop.open(kind);
      await shop.engine(true);
      await shop.history.save();
      await shop.engine(true);
      await shop.history.restore();
      await shop.engine(true);
      const store = await openStore(shop.subject);
      try {
        await expect.poll(async () => (await store.listWorkers()).length).toBe(3);
      } finally {
        await store.close();
      }
    },
  );
}
