// Updates: handled once, at their place in the journal; every sender gets the one answer.

import {
  createClient,
  createEngine,
  FatalError,
  promise,
  query,
  signal,
  task,
  update,
  workflow,
  type Run,
} from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, createGate, rejection, storeAround } from "./world.ts";

const account = workflow(
  "account",
  { ports: { withdraw: update<number, number>(), close: signal(), balance: query<number>() } },
  async (ctx, cents: number) => {
    let left = cents;
    ctx.onQuery("balance", () => left);
    ctx.onUpdate("withdraw", async (wanted) => {
      if (wanted > left) throw new FatalError("not enough");
      left -= wanted;
      await ctx.run("pay out", () => wanted);
      return left;
    });
    await ctx.receive("close");
    return left;
  },
);

test("an update is answered with what its handler gives, or throws", async () => {
  await using engine = await createTestEngine({ definitions: [account] });
  const run = await engine.start(account, 100);
  expect(await run.update("withdraw", 30)).toBe(70);
  const refusal = await rejection(run.update("withdraw", 80));
  expect([refusal.message, refusal.code]).toEqual(["not enough", "FATAL"]);
  expect(await Promise.all([run.update("withdraw", 1), run.update("withdraw", 2)])).toHaveLength(2);
  expect(await run.query("balance")).toBe(67);
  await run.signal("close");
  expect(await run.result()).toBe(67);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.filter((type) => type === "UpdateCompleted")).toHaveLength(3);
  expect(types.filter((type) => type === "UpdateFailed")).toHaveLength(1);
});

test("the same dedupId again gets the same answer, and is handled once, also after a crash and after the end", async () => {
  await using engine = await createTestEngine({ definitions: [account] });
  const run = await engine.start(account, 100);
  const withdraw = (dedupId: string) => run.update("withdraw", 10, { dedupId });
  expect(await Promise.all([withdraw("a"), withdraw("a"), withdraw("a")])).toEqual([90, 90, 90]);
  await engine.crash();
  expect(await withdraw("a")).toBe(90);
  await engine.clock.advance("2 days");
  expect(await withdraw("a")).toBe(90);
  expect(await withdraw("b")).toBe(80);
  await run.signal("close");
  expect(await run.result()).toBe(80);
  expect(await withdraw("a")).toBe(90);
  expect((await rejection(withdraw("c"))).code).toBe("RUN_ENDED");
  expect((await rejection(run.update("withdraw", 1))).code).toBe("RUN_ENDED");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a request that comes a second time, its id forgotten by the store, is not handled again", async () => {
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [account], store: source });
  const run = await engine.start(account, 100, { id: "account-1" });
  expect(await run.update("withdraw", 10, { dedupId: "a" })).toBe(90);
  for (let crash = 0; crash < 2; crash += 1) {
    const arrival = { type: "UpdateRequested", target: "a", data: '{"args":10,"id":"a","name":"withdraw"}' } as const;
    await source.store.write([{ write: "message", to: "account-1", arrival, once: false }]);
    expect(await run.update("withdraw", 1, { dedupId: `b${crash}` })).toBe(89 - crash);
    await engine.crash();
  }
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("updates that come before a handler is registered wait for it, and are handled in order", async () => {
  const slow = workflow("slow", { ports: { add: update<number, string>(), go: promise() } }, async (ctx) => {
    await ctx.promise("go");
    ctx.onUpdate("add", (n) => {
      seen.push(n);
      return `${n} is number ${seen.length}`;
    });
    const seen: number[] = [];
    await ctx.sleep("1 hour");
    return seen;
  });
  await using engine = await createTestEngine({ definitions: [slow] });
  const run = await engine.start(slow);
  const answers = Promise.allSettled([run.update("add", 5), run.update("add", 6)]);
  await engine.clock.advance(0);
  await engine.crash();
  const again = run.update("add", 7);
  await run.resolve("go");
  expect(await again).toBe("7 is number 3");
  expect((await answers).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual([5, 6, 7]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("when a run ends without an answer, the update rejects at once", async () => {
  const leaves = workflow("leaves", { ports: { ask: update<void, string>(), go: signal() } }, async (ctx) => {
    ctx.onUpdate("ask", () => ctx.sleep("1 day").then(() => "late"));
    await ctx.receive("go");
  });
  await using engine = await createTestEngine({ definitions: [leaves] });
  const run = await engine.start(leaves);
  const asked = rejection(run.update("ask"));
  await engine.clock.advance("1 hour");
  await run.signal("go");
  expect((await asked).code).toBe("RUN_ENDED");
});

test("a run that only waits for updates is not stalled, and doctor finds no problem", async () => {
  const door = workflow("door", { ports: { open: update<string>(), state: query<string>() } }, async (ctx) => {
    let by = "no caller";
    ctx.onQuery("state", () => by);
    await new Promise<void>((resolve) =>
      ctx.onUpdate("open", (who) => {
        by = who;
        resolve();
      }),
    );
    return by;
  });
  const { output } = await crashEverywhere(door, undefined, {
    drive: async (engine, id) => (engine.get(door, id) as Run<typeof door>).update("open", "Eve", { dedupId: "1" }),
  });
  expect(output).toBe("Eve");
  await using engine = await createTestEngine({ definitions: [door] });
  const run = await engine.start(door);
  await engine.clock.advance("1 day");
  expect((await run.info()).status).toBe("waiting");
  await engine.crash();
  expect(await run.query("state")).toBe("no caller");
  await run.update("open", "Ann");
  expect(await run.result()).toBe("Ann");
});

test("a handler may wait for what comes later, and its answer comes then", async () => {
  const chat = workflow("chat", { ports: { ask: update<string, string>(), reply: signal<string>() } }, async (ctx) => {
    const open: { question: string; answer: (text: string) => void }[] = [];
    ctx.onUpdate("ask", (question) => new Promise<string>((answer) => open.push({ question, answer })));
    for (let n = 0; n < 2; n += 1) {
      const text = await ctx.receive("reply");
      const next = open.shift();
      next?.answer(`${next.question}: ${text}`);
    }
    await ctx.sleep(1);
  });
  await using engine = await createTestEngine({ definitions: [chat] });
  const run = await engine.start(chat);
  const first = run.update("ask", "when", { dedupId: "1" });
  const second = run.update("ask", "where", { dedupId: "2" });
  await engine.clock.advance(0);
  await run.signal("reply", "now");
  await run.signal("reply", "here");
  expect(await Promise.all([first, second])).toEqual(["when: now", "where: here"]);
  await engine.clock.advance(1);
  await run.result();
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("what an update is asked with is checked at the door; an answer that is no data is a failure", async () => {
  const wrong = workflow("wrong", { ports: { f: update<number, unknown>(), go: signal() } }, async (ctx) => {
    const register = ctx.onUpdate as (name: string, handler: unknown) => void;
    const codes = [() => register("g", () => 1), () => register("go", () => 1), () => register("f", 5)].map((call) => {
      try {
        call();
        return "accepted";
      } catch (error) {
        return (error as { code?: string }).code;
      }
    });
    ctx.onUpdate("f", () => () => 1);
    await ctx.receive("go");
    return codes;
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  const ask = run.update as (name: string, args?: unknown, options?: object) => Promise<unknown>;
  expect((await rejection(ask("g"))).code).toBe("UNKNOWN_PORT");
  expect((await rejection(ask("f", () => 1))).code).toBe("NOT_DATA");
  expect((await rejection(ask("f", 1, { dedupID: "x" }))).code).toBe("BAD_OPTIONS");
  expect((await rejection(ask("f", 1))).code).toBe("NOT_DATA");
  await run.signal("go");
  expect(await run.result()).toEqual(["UNKNOWN_PORT", "UNKNOWN_PORT", "BAD_OPTIONS"]);
});

test("changed code that answers otherwise is found by verify", async () => {
  const make = (factor: number) =>
    workflow("times", { ports: { times: update<number, number>(), go: signal() } }, async (ctx) => {
      ctx.onUpdate("times", (n) => n * factor);
      await ctx.receive("go");
    });
  using folder = createFolder();
  const store = `sqlite:${folder.file("times.db")}`;
  {
    await using engine = await createEngine({ store, definitions: [make(2)] });
    const run = await engine.start("times", undefined, { id: "times-1" });
    expect(await run.update("times", 4)).toBe(8);
    await run.signal("go");
    await run.result();
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
  await using engine = await createEngine({ store, definitions: [make(3)] });
  expect(await engine.get("times", "times-1").verify()).toMatchObject({ status: "mismatch", expected: 12, actual: 8 });
});

const bill = task("bill", (_ctx, cents: number) => ({ billed: cents }));
const shop = workflow(
  "shop",
  {
    ports: {
      add: signal<number>(),
      discount: update<number, number>(),
      pay: update<void, { billed: number }>(),
      total: query<number>(),
    },
  },
  async (ctx) => {
    let total = 0;
    let paid = false;
    ctx.onQuery("total", () => total);
    ctx.onUpdate("discount", (cents) => (total -= cents));
    ctx.onUpdate("pay", async () => {
      const bought = await ctx.task(bill, total);
      paid = true;
      return bought;
    });
    while (!paid) {
      const cents = await ctx.receive("add", { timeout: "1 minute" });
      if (cents !== undefined) total += cents;
    }
    return total;
  },
);

test("a shop of signals, queries and updates ends the same, killed at every commit", async () => {
  const { output, crashes } = await crashEverywhere(shop, undefined, {
    definitions: [bill],
    drive: async (engine, id) => {
      const run = engine.get(shop, id) as Run<typeof shop>;
      await run.signal("add", 300, { dedupId: "1" });
      await run.signal("add", 200, { dedupId: "2" });
      expect(await run.query("total")).toBeLessThanOrEqual(500);
      expect(await run.update("discount", 50, { dedupId: "3" })).toBe(450);
      expect(await run.query("total")).toBe(450);
      expect(await run.update("pay", undefined, { dedupId: "4" })).toEqual({ billed: 450 });
    },
  });
  expect(output).toBe(450);
  expect(crashes).toBeGreaterThan(10);
});

test("an update asked by another engine is answered by the one that holds the run", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("account.db")}`;
  await using works = await createEngine({ store, definitions: [account] });
  await using asks = await createClient({ store, definitions: [account] });
  await works.start(account, 100, { id: "account-1" });
  const there = asks.get(account, "account-1");
  expect(await there.update("withdraw", 30)).toBe(70);
  expect((await rejection(there.update("withdraw", 300))).message).toBe("not enough");
  await there.signal("close");
  expect(await there.result()).toBe(70);
});

test("an update without an answer goes over to the next generation, and its sender follows it", async () => {
  const rounds = workflow(
    "rounds",
    { ports: { ask: update<string, string>(), go: signal() } },
    async (ctx, n: number) => {
      if (n > 0) ctx.onUpdate("ask", (who) => `${who} in round ${n}`);
      await ctx.receive("go");
      if (n === 0) return ctx.continueAsNew(1);
      return "over";
    },
  );
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, 0);
  const asked = run.update("ask", "Ann");
  const repeated = run.update("ask", "Bob", { dedupId: "bob" });
  await engine.clock.advance(0);
  await run.signal("go");
  expect(await Promise.all([asked, repeated])).toEqual(["Ann in round 1", "Bob in round 1"]);
  expect(await run.update("ask", "Bob", { dedupId: "bob" })).toBe("Bob in round 1");
  await run.signal("go");
  expect(await run.result()).toBe("over");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an update waits until the engine closes, and is rejected then", async () => {
  const gate = createGate();
  const deaf = workflow("deaf", { ports: { ask: update<void, number>() } }, async (ctx) => {
    await ctx.run("busy", () => gate.wait());
    ctx.onUpdate("ask", () => 1);
    await ctx.sleep("1 day");
  });
  const engine = await createTestEngine({ definitions: [deaf] });
  const run = await engine.start(deaf);
  const asked = rejection(run.update("ask"));
  await gate.reached;
  gate.open();
  void engine.close();
  expect(["ENGINE_CLOSED", "UNEXPECTED"]).toContain((await asked).code);
});
