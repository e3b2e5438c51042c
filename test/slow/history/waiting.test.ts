// Waiting clients after a rollback of the store: updates and streams, and the queues that workers declare again.

import { expect, test } from "vitest";
import { createClient, createEngine, queue, signal, stream, task, update, workflow, type Client } from "reprise";
import { createFolder, createGate } from "../../engine/world.ts";
import { historyOf } from "../../faults/history.ts";
import { SILENT } from "../../faults/workload.ts";

const TIMEOUT = { timeout: 120_000 };

const gates = { now: createGate() };

const account = workflow(
  "account",
  { ports: { ask: update<number, number>(), more: signal<number>(), words: stream<string>() } },
  async (ctx, name: string) => {
    ctx.onUpdate("ask", async (x) => {
      await ctx.run("slow", () => gates.now.wait());
      return x * 2;
    });
    for (;;) {
      const more = await ctx.receive("more");
      ctx.emit("words", `${name} ${more}`);
      if (more < 0) return name;
    }
  },
);

class Bank implements AsyncDisposable {
  readonly folder = createFolder();
  readonly url = `sqlite:${this.folder.path}/bank.db`;
  readonly history = historyOf(this.url, this.folder.path);
  readonly #engines: Client<any>[] = [];

  async engine(works: boolean): Promise<Client<any>> {
    const options = { store: this.url, definitions: [account], logger: SILENT };
    const engine = await (works ? createEngine({ ...options, worker: { lease: 3_000 } }) : createClient(options));
    this.#engines.push(engine);
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const engine of this.#engines) await engine.close({ grace: 0 });
    this.folder[Symbol.dispose]();
  }
}

async function entries(engine: Client<any>, id: string): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of engine.get(account, id).journal()) types.push(type);
  return types;
}

test("an update whose request is lost is rejected with STORE_ROLLED_BACK", TIMEOUT, async () => {
  gates.now = createGate();
  await using bank = new Bank();
  const [worker, client] = [await bank.engine(true), await bank.engine(false)];
  await worker.start(account, "one", { id: "one" });
  await client.find("one");
  await bank.history.save();
  const asked = client.get(account, "one").update("ask", 21);
  const error = asked.catch((cause: unknown) => cause);
  await expect.poll(() => entries(worker, "one")).toContain("UpdateRequested");
  await bank.history.restore();
  gates.now.open();
  expect(await error).toMatchObject({ code: "STORE_ROLLED_BACK", details: { run: "one" } });
});

test("an update whose answer was lost gets the repeated answer", TIMEOUT, async () => {
  gates.now = createGate();
  await using bank = new Bank();
  const [worker, client] = [await bank.engine(true), await bank.engine(false)];
  await worker.start(account, "two", { id: "two" });
  const asked = client.get(account, "two").update("ask", 21);
  await expect.poll(() => entries(worker, "two")).toContain("UpdateRequested");
  await bank.history.save();
  for (let more = 0; more < 5; more += 1) await client.get(account, "two").signal("more", more);
  await expect
    .poll(async () => (await entries(worker, "two")).filter((type) => type === "SignalReceived").length)
    .toBe(5);
  await bank.history.restore();
  gates.now.open();
  expect(await asked).toBe(42);
});

test("a reader of a stream never gets chunks of two histories", TIMEOUT, async () => {
  await using bank = new Bank();
  const [worker, client] = [await bank.engine(true), await bank.engine(false)];
  await worker.start(account, "three", { id: "three" });
  await client.find("three");
  await bank.history.save();
  const words: string[] = [];
  const read = (async () => {
    for await (const { value } of client.get(account, "three").stream("words")) words.push(value as string);
  })().catch((cause: unknown) => cause);
  for (const more of [1, 2]) await client.get(account, "three").signal("more", more);
  await expect.poll(() => words).toEqual(["three 1", "three 2"]);
  await bank.history.restore();
  for (const more of [3, 4, -1]) await client.get(account, "three").signal("more", more);
  expect(await read).toMatchObject({ code: "STORE_ROLLED_BACK" });
  expect(words).toEqual(["three 1", "three 2"]);
});

test("queues keep their limits when the store is rolled back to before they were declared", TIMEOUT, async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.path}/shop.db`;
  const history = historyOf(store, folder.path);
  let [atOnce, most] = [0, 0];
  const pay = task("pay", { queue: queue("bank", { concurrency: 1 }) }, async (_ctx, n: number) => {
    most = Math.max(most, (atOnce += 1));
    await new Promise((resolve) => setImmediate(resolve));
    atOnce -= 1;
    return n;
  });
  const order = workflow("order", async (ctx, n: number) => ctx.task(pay, n));
  await (await createClient({ store, definitions: [order], logger: SILENT })).close();
  await history.save();
  await using engine = await createEngine({ store, definitions: [order, pay], logger: SILENT });
  for (const round of ["before", "after"]) {
    if (round === "after") await history.restore();
    const runs = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => engine.start(order, n, { id: `${round}-${n}` })));
    await Promise.all(runs.map((run) => run.result()));
  }
  expect(most).toBe(1);
  expect(await engine.findQueue("bank")).toMatchObject({ name: "bank" });
});
