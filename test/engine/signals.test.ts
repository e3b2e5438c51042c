// Signals: first in, first out, each taken once, at its place in the journal.

import { createClient, createEngine, signal, task, workflow, type Run } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, createGate, rejection, storeAround } from "./world.ts";

interface Item {
  readonly sku: string;
  readonly qty: number;
}

const cart = workflow("cart", { ports: { add: signal<Item>(), checkout: signal() } }, async (ctx) => {
  const items: Item[] = [];
  for (;;) {
    const message = await ctx.receive(["add", "checkout"], { timeout: "1 day" });
    if (message === undefined) return { status: "abandoned" as const, items };
    if (message.name === "checkout") return { status: "bought" as const, items };
    items.push(message.value);
  }
});

test("signals are taken first in first out, across names in the order they came", async () => {
  await using engine = await createTestEngine({ definitions: [cart] });
  const run = await engine.start(cart);
  await run.signal("add", { sku: "a", qty: 1 });
  await run.signal("add", { sku: "b", qty: 2 });
  await run.signal("checkout");
  expect(await run.result()).toEqual({
    status: "bought",
    items: [
      { sku: "a", qty: 1 },
      { sku: "b", qty: 2 },
    ],
  });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a receive that runs out gives undefined and consumes nothing", async () => {
  const patient = workflow("patient", { ports: { go: signal(), word: signal<string>() } }, async (ctx) => {
    const first = await ctx.receive("go", { timeout: "1 hour" });
    const second = await ctx.receive("go", { timeout: "1 hour" });
    const word = await ctx.receive("word", { timeout: "1 hour" });
    return { first, second, word };
  });
  await using engine = await createTestEngine({ definitions: [patient] });
  const run = await engine.start(patient);
  await engine.clock.advance("1 hour");
  await run.signal("go");
  await run.signal("word", "hi");
  expect(await run.result()).toEqual({ first: undefined, second: true, word: "hi" });
  await engine.clock.advance("1 day");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("what comes before the code waits is kept, and taking it leaves no entry", async () => {
  const gate = createGate();
  const busy = workflow("busy", { ports: { n: signal<number>() } }, async (ctx) => {
    await ctx.run("work", () => gate.wait());
    return [await ctx.receive("n"), await ctx.receive("n", { timeout: 1 }), await ctx.receive(["n"])];
  });
  await using engine = await createTestEngine({ definitions: [busy] });
  const run = await engine.start(busy);
  await gate.reached;
  for (const n of [1, 2, 3]) await run.signal("n", n);
  gate.open();
  expect(await run.result()).toEqual([1, 2, { name: "n", value: 3 }]);
  expect((await collect(run.journal())).map(({ type }) => type)).toEqual([
    "RunStarted",
    "SignalReceived",
    "SignalReceived",
    "SignalReceived",
    "OperationCompleted",
    "RunCompleted",
  ]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("several receives on one name are served oldest first, each once", async () => {
  const many = workflow("many", { ports: { a: signal<number>(), b: signal<number>() } }, async (ctx) =>
    Promise.all([ctx.receive("a"), ctx.receive(["a", "b"]), ctx.receive("b"), ctx.receive("a")]),
  );
  await using engine = await createTestEngine({ definitions: [many] });
  const run = await engine.start(many);
  await run.signal("b", 1);
  await run.signal("a", 2);
  await run.signal("b", 3);
  await run.signal("a", 4);
  expect(await run.result()).toEqual([2, { name: "b", value: 1 }, 3, 4]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("of a signal and a timeout the one first in the journal wins, also after a crash", async () => {
  const race = workflow("race", { ports: { go: signal<string>() } }, async (ctx) => {
    const got = await ctx.receive("go", { timeout: "1 minute" });
    const then = await ctx.receive("go", { timeout: "1 minute" });
    await ctx.sleep("1 hour");
    return [got, then];
  });
  await using engine = await createTestEngine({ definitions: [race] });
  const run = await engine.start(race);
  await engine.clock.advance("59 s");
  await run.signal("go", "in time");
  await engine.clock.advance("61 s");
  await run.signal("go", "too late");
  await engine.crash();
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual(["in time", undefined]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("ACCEPTANCE 34: waiting inside try never lands in the catch", async () => {
  const charge = task("charge", (_ctx, cents: number) => ({ cents }));
  const refund = task("refund", () => "refunded");
  const saga = workflow("saga", { ports: { approve: signal<boolean>() } }, async (ctx) => {
    const payment = await ctx.task(charge, 5);
    try {
      const ok = await ctx.receive("approve");
      if (!ok) throw new Error("refused");
      return { shipped: payment.cents };
    } catch {
      return ctx.task(refund);
    }
  });
  await using engine = await createTestEngine({ definitions: [saga, charge, refund] });
  const run = await engine.start(saga);
  for (let crash = 0; crash < 3; crash += 1) {
    await engine.clock.advance("1 day");
    await engine.crash();
  }
  await run.signal("approve", true);
  expect(await run.result()).toEqual({ shipped: 5 });
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.filter((type) => type === "TaskScheduled")).toHaveLength(1);
});

test("a cancel rejects a receive; what was kept stays behind and is counted", async () => {
  const stubborn = workflow("stubborn", { ports: { go: signal(), other: signal<number>() } }, async (ctx) => {
    await ctx.receive("go");
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [stubborn], store: source });
  const run = await engine.start(stubborn, undefined, { id: "run-1" });
  await run.signal("other", 1);
  await run.signal("other", 2);
  await run.cancel("enough");
  expect((await rejection(run.result())).name).toBe("CancelledError");
  expect((await source.store.findRun("run-1"))?.unread).toBe(2);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect((await rejection(run.signal("go"))).code).toBe("RUN_ENDED");
});

test("a second signal with the same dedupId is ignored", async () => {
  await using engine = await createTestEngine({ definitions: [cart] });
  const run = await engine.start(cart);
  for (let n = 0; n < 3; n += 1) await run.signal("add", { sku: "a", qty: 1 }, { dedupId: "add-1" });
  await run.signal("add", { sku: "b", qty: 1 }, { dedupId: "add-2" });
  await engine.crash();
  await run.signal("add", { sku: "a", qty: 1 }, { dedupId: "add-1" });
  await run.signal("checkout");
  expect((await run.result()).items.map(({ sku }) => sku)).toEqual(["a", "b"]);
});

test("what a signal carries is checked at the door, and the parsed value is kept", async () => {
  const positive = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value: unknown) =>
        typeof value === "string" && Number(value) > 0
          ? { value: Number(value) }
          : { issues: [{ message: "expected a positive number as text" }] },
    },
  } as const;
  const counter = workflow("counter", { ports: { add: signal<number>(positive) } }, (ctx) => ctx.receive("add"));
  await using engine = await createTestEngine({ definitions: [counter] });
  const run = await engine.start(counter);
  const send = run.signal as (name: string, value: unknown, options?: object) => Promise<void>;
  expect((await rejection(send("add", "-1"))).code).toBe("BAD_INPUT");
  expect((await rejection(send("add", "1", { dedupID: "x" }))).code).toBe("BAD_OPTIONS");
  expect((await rejection(send("sub", "1"))).code).toBe("UNKNOWN_PORT");
  expect((await rejection(send("add", "1", { dedupId: "" }))).code).toBe("BAD_NAME");
  await send("add", "7");
  expect(await run.result()).toBe(7);
});

test("receiving what is not declared is refused, and so is receiving inside a step", async () => {
  const wrong = workflow("wrong", { ports: { go: signal() } }, async (ctx) => {
    const receive = ctx.receive as (names: unknown, options?: object) => Promise<unknown>;
    const codes = [];
    for (const call of [
      () => receive("gone"),
      () => receive([]),
      () => receive("go", { timeOut: 1 }),
      () => ctx.run("step", () => receive("go")),
    ])
      codes.push((await rejection(call())).code);
    return codes;
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual(["UNKNOWN_PORT", "BAD_OPTIONS", "BAD_OPTIONS", "USAGE"]);
});

const shop = workflow("shop", { ports: { add: signal<number>(), done: signal() } }, async (ctx) => {
  const totals: number[] = [];
  const first = await ctx.run("open", () => 10);
  for (let sum = first; ;) {
    const [message] = await Promise.all([
      ctx.receive(["add", "done"], { timeout: "1 hour" }),
      ctx.run("tick", () => sum),
    ]);
    if (message?.name !== "add") return { totals, by: message?.name };
    totals.push((sum += message.value));
  }
});

test("a run driven by signals ends the same, killed at every commit", async () => {
  const { output, crashes } = await crashEverywhere(shop, undefined, {
    drive: async (engine, id) => {
      const run = engine.get(shop, id) as Run<typeof shop>;
      for (const n of [1, 2, 3]) await run.signal("add", n, { dedupId: `add-${n}` });
      await run.signal("done", undefined, { dedupId: "done" });
    },
  });
  expect(output).toEqual({ totals: [11, 13, 16], by: "done" });
  expect(crashes).toBeGreaterThan(8);
});

test("a signal sent by another engine on the same file wakes the run", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  await using works = await createEngine({ store, definitions: [cart] });
  await using asks = await createClient({ store, definitions: [cart] });
  const run = await works.start(cart, undefined, { id: "cart-1" });
  const there = asks.get(cart, "cart-1");
  await Promise.all([1, 2, 3, 4, 5].map((qty) => there.signal("add", { sku: "a", qty }, { dedupId: `${qty}` })));
  await there.signal("checkout");
  expect((await run.result()).items.map(({ qty }) => qty)).toEqual([1, 2, 3, 4, 5]);
});
