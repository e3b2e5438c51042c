// Combinations of features: each guarantee holds while another feature is in use.

import { expect, test } from "vitest";
import {
  createClient,
  createEngine,
  FatalError,
  promise,
  signal,
  stream,
  task,
  update,
  workflow,
  type StoreSource,
} from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, createFreezer, createGate, rejection, until, within } from "./world.ts";

/** A store that receives no change notices. */
function storeWithoutNotices(path: string): StoreSource {
  return {
    async "~open"(options) {
      const store = await sqlite(path)["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          if (key === "pollChanges") return () => false;
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

test("a pause is not lost when the code continues as new before it takes effect", async () => {
  const gate = createGate();
  let calls = 0;
  const rounds = workflow("rounds", async (ctx, n: number): Promise<number> => {
    if (n > 0) return ctx.run("more", () => (calls += 1));
    await ctx.run("work", () => gate.wait());
    return ctx.continueAsNew(1);
  });
  using folder = createFolder();
  const path = folder.file("rounds.db");
  await using works = await createEngine({ store: storeWithoutNotices(path), definitions: [rounds] });
  await using controls = await createClient({ store: `sqlite:${path}`, definitions: [rounds] });
  const run = await works.start(rounds, 0, { id: "rounds" });
  await gate.reached;
  await controls.get(rounds, "rounds").pause();
  gate.open();
  await run.result({ timeout: "300 ms" }).catch(() => {});
  expect(await run.info()).toMatchObject({ status: "paused", generation: 1, entries: 1 });
  expect(calls).toBe(0);
  await run.resume();
  expect(await run.result()).toBe(1);
});

test("a repeated update returns the answer of the generation that handled it", async () => {
  let handled = 0;
  const rounds = workflow(
    "rounds",
    { ports: { ask: update<void, string>(), go: signal() } },
    async (ctx, n: number): Promise<string> => {
      ctx.onUpdate("ask", () => {
        handled += 1;
        return `round ${n}`;
      });
      await ctx.receive("go");
      return n < 2 ? ctx.continueAsNew(n + 1) : "over";
    },
  );
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, 0);
  expect(await run.update("ask", undefined, { dedupId: "a" })).toBe("round 0");
  await run.signal("go");
  await engine.clock.advance(0);
  expect(await within(2_000, run.update("ask", undefined, { dedupId: "a" }))).toBe("round 0");
  expect(handled).toBe(1);
  await run.signal("go");
  await engine.clock.advance(0);
  await engine.crash();
  expect(await within(2_000, run.update("ask", undefined, { dedupId: "a" }))).toBe("round 0");
  await run.signal("go");
  await run.result();
  expect(await within(2_000, run.update("ask", undefined, { dedupId: "a" }))).toBe("round 0");
  expect(handled).toBe(1);
});

test("the caller of an update follows it over several generations between two polls", async () => {
  const rounds = workflow(
    "rounds",
    { ports: { ask: update<void, string>(), go: signal() } },
    async (ctx, n: number): Promise<string> => {
      if (n === 0) {
        await ctx.receive("go");
        return ctx.continueAsNew(1);
      }
      if (n < 4) {
        const asked = Promise.withResolvers<void>();
        ctx.onUpdate("ask", () => {
          asked.resolve();
          return `round ${n}`;
        });
        if (n === 1) await asked.promise;
        return ctx.continueAsNew(n + 1);
      }
      await ctx.receive("go");
      return "over";
    },
  );
  using folder = createFolder();
  const path = folder.file("rounds.db");
  const freezer = createFreezer(path);
  await using works = await createEngine({ store: `sqlite:${path}`, definitions: [rounds] });
  await using asks = await createClient({ store: freezer, definitions: [rounds] });
  const run = await works.start(rounds, 0, { id: "rounds" });
  const asked = asks.get(rounds, "rounds").update("ask");
  await until(async () => (await collect(run.journal())).some(({ type }) => type === "UpdateRequested"));
  freezer.freeze();
  await run.signal("go");
  await until(async () => (await run.info()).generation === 4);
  freezer.thaw();
  expect(await within(10_000, asked)).toBe("round 1");
  await run.signal("go");
  await run.result();
});

test("an error after continueAsNew undoes nothing", async () => {
  const undone: string[] = [];
  const giveBack = task("give back", (_ctx, what: string) => void undone.push(what));
  const rounds = workflow("rounds", async (ctx, n: number): Promise<number> => {
    if (n === 1) return 1;
    await ctx.task(take, "a", { undo: giveBack });
    await ctx.run("b", () => "b", { undo: async (what) => void undone.push(what) });
    void ctx.continueAsNew(1);
    throw new Error("not heard");
  });
  const take = task("take", (_ctx, what: string) => what);
  await using engine = await createTestEngine({ definitions: [rounds, take, giveBack] });
  const run = await engine.start(rounds, 0);
  expect(await run.result()).toBe(1);
  expect(undone).toEqual([]);
  const types = (await collect(run.journal({ generation: 0 }))).map(({ type }) => type);
  expect(types).toEqual(["RunStarted", "TaskScheduled", "TaskCompleted", "OperationCompleted", "RunContinued"]);
  expect(await run.verify({ generation: 0 })).toMatchObject({ status: "same" });
});

test("the next generation does not handle a started update again, and the update fails", async () => {
  let paid = 0;
  const pay = task("pay", () => {
    paid += 1;
  });
  const rounds = workflow(
    "rounds",
    { ports: { ask: update<void, string>(), go: signal(), ok: promise() } },
    async (ctx, n: number): Promise<string> => {
      ctx.onUpdate("ask", async () => {
        await ctx.task(pay);
        await ctx.promise("ok");
        return `round ${n}`;
      });
      await ctx.receive("go");
      return n === 0 ? ctx.continueAsNew(1) : "over";
    },
  );
  await using engine = await createTestEngine({ definitions: [rounds, pay] });
  const run = await engine.start(rounds, 0);
  const asked = rejection(run.update("ask", undefined, { dedupId: "a" }));
  await engine.clock.advance(0);
  await run.signal("go");
  expect(await asked).toMatchObject({ code: "RUN_ENDED", message: expect.stringContaining("continued as new") });
  expect(await rejection(run.update("ask", undefined, { dedupId: "a" }))).toMatchObject({ code: "RUN_ENDED" });
  await engine.crash();
  await run.signal("go");
  await run.result();
  expect(paid).toBe(1);
  for (const generation of [0, 1]) expect(await run.verify({ generation })).toMatchObject({ status: "same" });
});

test("code that is being undone neither continues as new nor sends messages to its children", async () => {
  const undone: string[] = [];
  const listens = workflow("listens", { ports: { say: signal<string>() } }, async (ctx) => ctx.receive("say"));
  const fails = workflow("fails", async (ctx, n: number): Promise<number> => {
    if (n > 0) return n;
    await ctx.run("a", () => "a", { undo: async (what) => void undone.push(what) });
    const child = ctx.child(listens, undefined, { id: "child" });
    const failed = ctx.run("fail", () => Promise.reject(new FatalError("no")));
    // Receives the failure after the code has thrown it.
    const other = failed.catch(async () => {
      for (let hop = 0; hop < 10; hop += 1) await Promise.resolve();
      await child.signal("say", "heard");
      return ctx.continueAsNew(1);
    });
    other.catch(() => {});
    await failed;
    return 0;
  });
  await using engine = await createTestEngine({ definitions: [fails, listens] });
  const run = await engine.start(fails, 0);
  expect((await rejection(run.result())).message).toContain("no");
  expect(undone).toEqual(["a"]);
  expect((await run.info()).generation).toBe(0);
  expect((await collect(run.journal())).some(({ type }) => type === "ChildSignalled")).toBe(false);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("after a retry, a signal received before the failure stays received, and a resolved promise stays resolved", async () => {
  let down = true;
  const ports = { add: signal<number>(), paid: promise<number>() };
  const adds = workflow("adds", { ports }, async (ctx) => {
    let sum = await ctx.promise("paid");
    await ctx.run("call", () => {
      if (down) throw new FatalError("down");
    });
    for (;;) {
      const more = await ctx.receive("add", { timeout: "1 s" });
      if (more === undefined) return sum;
      sum += more;
    }
  });
  await using engine = await createTestEngine({ definitions: [adds] });
  const run = await engine.start(adds);
  await run.signal("add", 1, { dedupId: "click-1" });
  await run.resolve("paid", 10);
  expect((await rejection(run.result())).message).toContain("down");
  down = false;
  await run.retry();
  await run.signal("add", 1, { dedupId: "click-1" });
  expect((await rejection(run.resolve("paid", 20))).code).toBe("PROMISE_ALREADY_RESOLVED");
  await engine.clock.advance("5 s");
  expect(await run.result()).toBe(11);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("the chunks of a retried run follow its earlier chunks, and none is lost, wherever it is killed", async () => {
  const shows = workflow("shows", { ports: { said: stream<string>(), go: signal() } }, async (ctx) => {
    ctx.emit("said", "begin");
    try {
      await ctx.run("call", () => {
        if (down) throw new FatalError("down");
      });
    } catch (error) {
      ctx.emit("said", "failed");
      ctx.emit("said", "really");
      throw error;
    }
    ctx.emit("said", "good");
    await ctx.receive("go");
    ctx.emit("said", "better");
    await ctx.receive("go");
    ctx.emit("said", "best");
  });
  let down = true;
  await using engine = await createTestEngine({ definitions: [shows] });
  const run = await engine.start(shows);
  await rejection(run.result());
  down = false;
  await run.retry();
  for (let n = 0; n < 2; n += 1) {
    await engine.clock.advance(0);
    await engine.crash();
    await run.signal("go");
  }
  await run.result();
  const said = (await collect(run.stream("said"))).map(({ value }) => value);
  expect(said).toEqual(["begin", "failed", "really", "good", "better", "best"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});
