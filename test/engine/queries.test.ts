// Queries: answered from the code's memory wherever the run is, and nothing is ever written.

import { createClient, createEngine, promise, query, signal, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, createGate, macrotask, rejection, storeAround } from "./world.ts";

interface Item {
  readonly sku: string;
  readonly qty: number;
}

const cart = workflow(
  "cart",
  {
    ports: { add: signal<Item>(), checkout: signal(), total: query<number>(), find: query<Item | undefined, string>() },
  },
  async (ctx) => {
    const items: Item[] = [];
    ctx.onQuery("total", () => items.reduce((sum, { qty }) => sum + qty, 0));
    ctx.onQuery("find", (sku) => items.find((item) => item.sku === sku));
    for (;;) {
      const message = await ctx.receive(["add", "checkout"]);
      if (message.name === "checkout") return items.length;
      items.push(message.value);
    }
  },
);

test("a query sees the signals that were sent before it", async () => {
  await using engine = await createTestEngine({ definitions: [cart] });
  const run = await engine.start(cart);
  expect(await run.query("total")).toBe(0);
  for (let n = 1; n <= 5; n += 1) {
    await run.signal("add", { sku: `s${n}`, qty: n });
    expect(await run.query("total")).toBe((n * (n + 1)) / 2);
  }
  expect(await run.query("find", "s3")).toEqual({ sku: "s3", qty: 3 });
  expect(await run.query("find", "none")).toBeUndefined();
});

test("a query to the worker that holds the run sees a signal from another process that the run has not read yet", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("cart.db")}`;
  const gate = createGate();
  const held = workflow("held", { ports: { add: signal<number>(), total: query<number>() } }, async (ctx) => {
    let total = 0;
    ctx.onQuery("total", () => total);
    const working = ctx.run("work", () => gate.wait());
    while (total < 20) total += await ctx.receive("add");
    await working;
    return total;
  });
  await using worker = await createEngine({ store, definitions: [held] });
  await using client = await createClient({ store, definitions: [held] });
  const run = await worker.start(held, undefined, { id: "held-1" });
  await gate.reached;
  for (let n = 1; n <= 20; n += 1) {
    await client.get(held, "held-1").signal("add", 1);
    expect(await run.query("total")).toBe(n);
  }
  gate.open();
  expect(await run.result()).toBe(20);
});

test("a query waits for the turn that the signal before it made due, however long its claim takes", async () => {
  const source = storeAround(async (writes, apply) => {
    if (writes.some(({ write }) => write === "claim-turns")) for (let turn = 0; turn < 20; turn += 1) await macrotask();
    return apply();
  });
  await using engine = await createTestEngine({ definitions: [cart], store: source });
  const run = await engine.start(cart);
  for (let n = 1; n <= 3; n += 1) {
    await engine.clock.advance(0);
    await run.signal("add", { sku: "a", qty: 1 });
    expect(await run.query("total")).toBe(n);
  }
});

test("a query is answered after a crash, and when the run has ended", async () => {
  await using engine = await createTestEngine({ definitions: [cart] });
  const run = await engine.start(cart);
  await run.signal("add", { sku: "a", qty: 7 });
  await engine.crash();
  expect(await run.query("total")).toBe(7);
  await run.signal("add", { sku: "b", qty: 1 });
  expect(await run.query("total")).toBe(8);
  await run.signal("checkout");
  expect(await run.result()).toBe(2);
  expect(await run.query("total")).toBe(8);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a query writes nothing and does not disturb a running step", async () => {
  const gate = createGate<number>();
  const busy = workflow("busy", { ports: { step: query<string>() } }, async (ctx) => {
    let step = "first";
    ctx.onQuery("step", () => step);
    await ctx.run("one", () => gate.wait());
    step = "second";
    await ctx.sleep("1 day");
  });
  await using engine = await createTestEngine({ definitions: [busy] });
  const run = await engine.start(busy);
  await gate.reached;
  expect(await run.query("step")).toBe("first");
  gate.open(1);
  await engine.clock.advance(0);
  const before = await run.info();
  for (let n = 0; n < 3; n += 1) expect(await run.query("step")).toBe("second");
  expect(await run.info()).toEqual(before);
});

test("what goes in and comes out of a query are copies", async () => {
  const keep = workflow("keep", { ports: { list: query<number[], { n: number }>(), go: promise() } }, async (ctx) => {
    const list = [1];
    const seen: unknown[] = [];
    ctx.onQuery("list", (args) => {
      args.n += 1;
      seen.push(args);
      return list;
    });
    await ctx.promise("go");
    return { list, seen: seen.length };
  });
  await using engine = await createTestEngine({ definitions: [keep] });
  const run = await engine.start(keep);
  const args = { n: 1 };
  const answer = await run.query("list", args);
  answer.push(2);
  expect([args, await run.query("list", args)]).toEqual([{ n: 1 }, [1]]);
});

test("a query that asks ctx for something, waits, or has no answer is refused and harms nothing", async () => {
  const ping = task("ping", () => "pong");
  const names = [
    "task",
    "run",
    "random",
    "uuid",
    "set",
    "receive",
    "child",
    "sleep",
    "onQuery",
    "late",
    "wrong",
  ] as const;
  const other = workflow("other", async () => 1);
  const ports = Object.fromEntries(names.map((name) => [name, query<unknown>()])) as Record<
    (typeof names)[number],
    ReturnType<typeof query<unknown>>
  >;
  const asked = workflow(
    "asked",
    { ports: { ...ports, go: signal(), nodata: query<unknown>(), wait: query<unknown>() } },
    async (ctx) => {
      ctx.onQuery("task", () => void ctx.task(ping));
      ctx.onQuery("run", () => void ctx.run("x", () => 1));
      ctx.onQuery("random", () => ctx.random());
      ctx.onQuery("uuid", () => ctx.uuid());
      ctx.onQuery("set", () => ctx.state.set("a", 1));
      ctx.onQuery("child", () => void ctx.child(other));
      ctx.onQuery("sleep", () => void ctx.sleep(1));
      ctx.onQuery("onQuery", () => ctx.onQuery("late", () => 1));
      ctx.onQuery("receive", () => ctx.receive("go"));
      ctx.onQuery("wait", async () => 1);
      ctx.onQuery("nodata", () => () => 1);
      ctx.onQuery("wrong", () => {
        throw new RangeError("out of range");
      });
      await ctx.receive("go");
      ctx.onQuery("late", () => "now");
      return ctx.random();
    },
  );
  await using engine = await createTestEngine({ definitions: [asked, other, ping] });
  const run = await engine.start(asked, undefined, { id: "asked" });
  const codes: Record<string, string | undefined> = {};
  for (const name of [...names, "nodata", "wait"] as const)
    codes[name] = await run.query(name).then(
      () => "answered",
      (error: Error & { code?: string }) => error.code ?? error.message,
    );
  expect(codes).toEqual({
    // A promise that rejects, which the query did not wait for.
    task: "answered",
    run: "answered",
    random: "USAGE",
    uuid: "USAGE",
    set: "USAGE",
    receive: "USAGE",
    child: "USAGE",
    sleep: "USAGE",
    onQuery: "USAGE",
    late: "NO_QUERY_HANDLER",
    wrong: "out of range",
    nodata: "NOT_DATA",
    wait: "USAGE",
  });
  expect((await rejection((run.query as (name: string) => Promise<unknown>)("none"))).code).toBe("UNKNOWN_PORT");
  await run.signal("go");
  const drawn = await run.result();
  const undisturbed = await engine.start(asked, undefined, { id: "asked-2", signals: { go: undefined } });
  expect(typeof (await undisturbed.result())).toBe("number");
  expect(await run.query("late")).toBe("now");
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect((await collect(run.journal())).map(({ type }) => type)).toEqual([
    "RunStarted",
    "PromiseCreated",
    "SignalReceived",
    "RunCompleted",
  ]);
  expect(drawn).toBeGreaterThanOrEqual(0);
});

test("a run that is stopped, expected or unknown: an answer, or a clear refusal", async () => {
  const lost = task("lost", () => 1);
  const stopped = workflow("stopped", { ports: { where: query<string>(), go: signal() } }, async (ctx) => {
    let where = "before";
    ctx.onQuery("where", () => where);
    await ctx.receive("go");
    where = "after";
    await ctx.task(lost);
  });
  await using engine = await createTestEngine({ definitions: [stopped] });
  const run = engine.get(stopped, "run-1");
  expect((await rejection(run.query("where"))).code).toBe("RUN_NOT_FOUND");
  await run.signal("go", undefined, { beforeStart: true });
  expect((await rejection(run.query("where"))).code).toBe("NO_QUERY_HANDLER");
  await engine.start(stopped, undefined, { id: "run-1" });
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("blocked");
  expect(await run.query("where")).toBe("after");
});

test("a paused run answers queries as of the pause; messages sent since are seen after it is resumed", async () => {
  await using engine = await createTestEngine({ definitions: [cart] });
  const run = await engine.start(cart);
  await run.signal("add", { sku: "a", qty: 2 });
  await run.pause();
  await run.signal("add", { sku: "b", qty: 3 });
  expect(await run.query("total")).toBeLessThanOrEqual(2);
  await run.resume();
  expect(await run.query("total")).toBe(5);
});

test("a run held by another engine is asked through its journal", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("cart.db")}`;
  await using works = await createEngine({ store, definitions: [cart] });
  await using asks = await createClient({ store, definitions: [cart] });
  const run = await works.start(cart, undefined, { id: "cart-1" });
  await run.signal("add", { sku: "a", qty: 3 });
  expect(await run.query("total")).toBe(3);
  expect(await asks.get(cart, "cart-1").query("total")).toBe(3);
});
