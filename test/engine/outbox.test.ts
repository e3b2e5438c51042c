// Outbox: messages are part of the commit, and delivered at least once, in order, with a stable key.

import { createEngine, promise, RetryLaterError, stream, workflow, type Run } from "reprise";
import { createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { createCrashWorld } from "../../src/testing/crash-world.ts";
import { CrashableTestEngine } from "../../src/testing/test-engine.ts";
import type { WriteInterceptor } from "../../src/testing/crashable-store.ts";
import { collect, createFolder, createGate, macrotask, rejection, storeAround, watchEvents } from "./world.ts";

/** The receiver: counts each message by its key. */
class Ledger {
  readonly arrived: { readonly payload: unknown; readonly key: string }[] = [];

  readonly take = async (payload: unknown, key: string): Promise<void> => {
    this.arrived.push({ payload, key });
  };

  /** The messages after deduplication by key, in order. */
  get applied(): readonly unknown[] {
    const seen = new Set<string>();
    return this.arrived.filter(({ key }) => !seen.has(key) && seen.add(key)).map(({ payload }) => payload);
  }
}

const ports = { go: promise() };
const letters = workflow("letters", { ports }, async (ctx, names: readonly string[]) => {
  for (const name of names) {
    await ctx.run("write", () => name);
    ctx.send("mail", { to: name });
  }
  return names.length;
});

test("messages arrive in order, each with its own key, also after the run has ended", async () => {
  const ledger = new Ledger();
  await using engine = await createTestEngine({ definitions: [letters], outbox: { mail: ledger.take } });
  const run = await engine.start(letters, ["ann", "bob", "eve"]);
  expect(await run.result()).toBe(3);
  await engine.clock.advance(0);
  expect(ledger.arrived.map(({ payload }) => payload)).toEqual([{ to: "ann" }, { to: "bob" }, { to: "eve" }]);
  expect(new Set(ledger.arrived.map(({ key }) => key)).size).toBe(3);
  const sent = (await collect(run.journal())).filter(({ type }) => type === "MessageSent");
  expect(sent.map(({ command, data }) => [command, data])).toEqual([
    ["Message(0)", { destination: "mail", index: 1, payload: { to: "ann" } }],
    ["Message(1)", { destination: "mail", index: 3, payload: { to: "bob" } }],
    ["Message(2)", { destination: "mail", index: 5, payload: { to: "eve" } }],
  ]);
  expect((await run.verify()).status).toBe("same");
});

test("a replay sends nothing again", async () => {
  const ledger = new Ledger();
  const slow = workflow("slow", async (ctx) => {
    ctx.send("mail", 1);
    await ctx.sleep("1 hour");
    ctx.send("mail", 2);
    await ctx.sleep("1 hour");
  });
  await using engine = await createTestEngine({ definitions: [slow], outbox: { mail: ledger.take } });
  const run = await engine.start(slow);
  for (let n = 0; n < 3; n += 1) {
    await engine.clock.advance("30 minutes");
    await engine.crash();
    await engine.clock.advance("30 minutes");
  }
  await run.result();
  expect(ledger.arrived.map(({ payload }) => payload)).toEqual([1, 2]);
});

test(
  "after a crash at every commit, a receiver that deduplicates by key applies every message once, in order",
  { timeout: 60_000 },
  async () => {
    const busy = workflow("busy", async (ctx) => {
      ctx.send("mail", "first");
      await ctx.run("work", () => 1);
      ctx.send("chat", "second");
      ctx.send("mail", "third");
      await ctx.sleep(5);
      ctx.send("mail", "last");
      return "over";
    });
    const trial = async (kill: { batch: number; when: "before" | "after" } | undefined): Promise<number> => {
      const ledger = new Ledger();
      const keys = new Set<string>();
      let deaths = 0;
      // The receiver is slow; a process that dies meanwhile has not reached it.
      const deliver = async (payload: unknown, key: string): Promise<void> => {
        const life = deaths;
        await macrotask();
        if (life === deaths) await ledger.take(payload, key);
      };
      const world = {
        ...(await createCrashWorld([busy])),
        outbox: new Map([
          ["mail", deliver],
          ["chat", deliver],
        ]),
      };
      let engine: CrashableTestEngine | undefined;
      let batches = 0;
      const die = (): Promise<never> => {
        deaths += 1;
        engine?.process.crash();
        return new Promise(() => {});
      };
      const cut: WriteInterceptor = async (apply) => {
        // Not during the creation of the engine: there is no process to kill yet.
        if (engine === undefined) return apply();
        const here = batches++ === kill?.batch;
        if (here && kill.when === "before") return die();
        const outcomes = await apply();
        return here ? die() : outcomes;
      };
      engine = await CrashableTestEngine.on(world, { intercept: cut });
      for (let crashes = 0; crashes < 2; crashes += 1) {
        void engine.start(busy, undefined, { id: "busy-1" }).catch(() => {});
        await engine.clock.advance("1 hour").catch(() => {});
        if (!engine.process.hasCrashed) break;
        engine = await CrashableTestEngine.on(world);
      }
      const where = `killed ${kill?.when} batch ${kill?.batch}`;
      expect((await world.store.findRun("busy-1"))?.status, where).toBe("completed");
      expect(ledger.applied, where).toEqual(["first", "second", "third", "last"]);
      for (const { key } of ledger.arrived) keys.add(key);
      expect(keys.size, where).toBe(4);
      expect((await world.store.info()).outbox, where).toMatchObject({ pending: 0, failing: 0, oldestAt: undefined });
      expect(await world.store.check(), where).toEqual([]);
      engine.process.core.crash();
      await world.store.close();
      return batches;
    };
    const batches = await trial(undefined);
    expect(batches).toBeGreaterThan(8);
    for (let batch = 0; batch < batches; batch += 1)
      for (const when of ["before", "after"] as const) await trial({ batch, when });
  },
);

test("a failing message is retried without limit, and the messages after it wait", async () => {
  const warnings: string[] = [];
  const came: unknown[] = [];
  let broken = true;
  const keys = new Set<string>();
  using watched = watchEvents();
  await using engine = await createTestEngine({
    definitions: [letters],
    logger: { info: () => {}, warn: (message) => void warnings.push(message), error: () => {} },
    outbox: {
      mail(payload, key) {
        keys.add(key);
        if (broken) throw new Error("no route to host");
        came.push(payload);
      },
    },
  });
  const run = await engine.start(letters, ["ann", "bob"]);
  await run.result();
  await engine.clock.advance("1 day");
  expect(keys.size).toBe(1);
  expect(warnings.length).toBeGreaterThan(1_000);
  expect(warnings[0]).toBe(`Attempt 1 to deliver Message(0) of run ${run.id} to mail failed: no route to host`);
  broken = false;
  await engine.clock.advance("2 minutes");
  expect(came).toEqual([{ to: "ann" }, { to: "bob" }]);
  const delivered = watched.events.filter(({ event }) => event === "message.delivered");
  expect(delivered).toMatchObject([
    { run: run.id, message: "Message(0)", destination: "mail" },
    { run: run.id, message: "Message(1)", destination: "mail", attempt: 1 },
  ]);
});

test("a handler that throws RetryLaterError is called again after that delay", async () => {
  const calls: number[] = [];
  await using engine = await createTestEngine({
    definitions: [letters],
    outbox: {
      async mail() {
        calls.push(engine.clock.now().getTime());
        if (calls.length === 1) throw new RetryLaterError("1 hour");
      },
    },
  });
  await engine.start(letters, ["ann"]);
  await engine.clock.advance("59 minutes");
  expect(calls.length).toBe(1);
  await engine.clock.advance("1 minute");
  expect(calls.map((at) => at - calls[0]!)).toEqual([0, 3_600_000]);
});

test("messages of one run do not wait for those of another", async () => {
  const came: unknown[] = [];
  const gate = createGate();
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [letters],
    outbox: {
      async mail(payload) {
        if ((payload as { to: string }).to === "stuck") await gate.wait();
        came.push((payload as { to: string }).to);
      },
    },
  });
  await engine.start(letters, ["stuck", "behind"]);
  await gate.reached;
  const other = await engine.start(letters, ["free", "too"]);
  await other.result();
  while (came.length < 2) await macrotask();
  expect(came).toEqual(["free", "too"]);
  gate.open();
  while (came.length < 4) await macrotask();
  expect(came).toEqual(["free", "too", "stuck", "behind"]);
});

test("a message waits for a worker with its handler, and doctor reports it when there is none", async () => {
  const ledger = new Ledger();
  using folder = createFolder();
  const store = storeAround((_writes, apply) => apply(), folder.file("store.db"));
  await using engine = await createTestEngine({ definitions: [letters], store, worker: { lease: "1 day" } });
  const run = await engine.start(letters, ["ann"]);
  await run.result();
  expect((await store.store.info()).outbox).toMatchObject({ pending: 1, failing: 0 });
  expect(await store.store.check()).toEqual([]);
  await engine.clock.advance("10 minutes");
  expect(await store.store.check()).toMatchObject([
    { invariant: "I21 outbox delivered", run: run.id, message: expect.stringContaining("handler for mail") },
  ]);
  await using other = await createTestEngine({
    definitions: [],
    store: `sqlite:${folder.file("store.db")}`,
    outbox: { mail: ledger.take },
    now: engine.clock.now(),
  });
  await other.clock.advance(0);
  expect(ledger.applied).toEqual([{ to: "ann" }]);
  expect(await store.store.check()).toEqual([]);
});

test("two live processes on one file deliver each message once", { timeout: 30_000 }, async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  const ledger = new Ledger();
  const options = { store, definitions: [letters], outbox: { mail: ledger.take } } as const;
  await using one = await createEngine(options);
  await using two = await createEngine(options);
  const names = ["a", "b", "c", "d", "e"];
  const runs = await Promise.all(Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? one : two).start(letters, names)));
  await Promise.all(runs.map((run) => run.result()));
  while (ledger.arrived.length < 60) await macrotask();
  await macrotask();
  expect(ledger.arrived.length).toBe(60);
  expect(new Set(ledger.arrived.map(({ key }) => key)).size).toBe(60);
});

test("the next worker delivers a dead worker's message again, with the same key", async () => {
  const keys: string[] = [];
  const gate = createGate();
  await using engine = await createTestEngine({
    definitions: [letters],
    outbox: {
      async mail(_payload, key) {
        keys.push(key);
        if (keys.length === 1) await gate.wait();
      },
    },
  });
  await engine.start(letters, ["ann"]);
  await gate.reached;
  await engine.crash();
  gate.open();
  await engine.clock.advance("1 minute");
  expect(keys.length).toBe(2);
  expect(new Set(keys).size).toBe(1);
});

test("strict replay compares destination and payload", async () => {
  let text = "one";
  let destination = "mail";
  const changing = workflow("changing", { ports }, async (ctx) => {
    ctx.send(destination, text);
    await ctx.promise("go");
  });
  await using engine = await createTestEngine({ definitions: [changing], outbox: { mail: () => {}, chat: () => {} } });
  const run = await engine.start(changing);
  await run.resolve("go");
  await run.result();
  expect((await run.verify()).status).toBe("same");
  text = "two";
  expect(await run.verify()).toMatchObject({
    where: "Message(0)",
    message: expect.stringContaining(
      "the journal recorded another message payload than the code now passes (at Message(0))",
    ),
  });
  text = "one";
  destination = "chat";
  expect(await run.verify()).toMatchObject({
    where: "Message(0)",
    message: expect.stringContaining(
      "the journal recorded a message to 'mail'; the code now sends a message to 'chat' (at Message(0))",
    ),
  });
});

test("a worker without outbox handlers sends no outbox claims to the store", async () => {
  const kinds = new Set<string>();
  const store = storeAround((writes, apply) => {
    for (const { write } of writes) kinds.add(write);
    return apply();
  });
  await using engine = await createTestEngine({ definitions: [letters], store });
  await (await engine.start(letters, ["ann"])).result();
  await engine.clock.advance("1 hour");
  expect(kinds.has("claim-messages")).toBe(false);
});

test.each<[string, (ctx: any) => unknown, string, string]>([
  ["without a destination", (ctx) => ctx.send("", 1), "BAD_NAME", "destination"],
  ["what is not data", (ctx) => ctx.send("mail", () => 1), "NOT_DATA", "The message to mail"],
  [
    "inside a step",
    (ctx) => ctx.run("x", () => ctx.send("mail", 1)),
    "USAGE",
    "The function of step `x` used the ctx of its workflow",
  ],
])("sending %s is refused and nothing is sent", async (_what, send, code, text) => {
  const ledger = new Ledger();
  const wrong = workflow("wrong", { ports }, async (ctx) => {
    try {
      await send(ctx);
    } catch (error) {
      const { code: given, message } = error as { code: string; message: string };
      return { given, message };
    }
    return undefined;
  });
  await using engine = await createTestEngine({ definitions: [wrong], outbox: { mail: ledger.take } });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual({ given: code, message: expect.stringContaining(text) });
  await engine.clock.advance("1 minute");
  expect(ledger.arrived).toEqual([]);
});

test.each<[string, unknown, string]>([
  ["a list", "mail", "outbox"],
  ["not a function", { mail: "smtp://localhost" }, "outbox.mail"],
])("an outbox that is %s is refused", async (_what, outbox, text) => {
  const error = await rejection(
    createEngine({ store: "sqlite::memory:", definitions: [letters], outbox: outbox as never }),
  );
  expect([error.code, error.message]).toEqual(["BAD_OPTIONS", expect.stringContaining(text)]);
});

test("the same message of another run has another key", async () => {
  const ledger = new Ledger();
  await using engine = await createTestEngine({ definitions: [letters], outbox: { mail: ledger.take } });
  for (const id of ["one", "two"])
    await ((await engine.start(letters, ["ann"], { id })) as Run<typeof letters>).result();
  await engine.clock.advance(0);
  expect(new Set(ledger.arrived.map(({ key }) => key)).size).toBe(2);
});

test("keys, order and offsets continue across generations", async () => {
  const ledger = new Ledger();
  const rounds = workflow(
    "rounds",
    { ports: { rounds: stream<number>() } },
    async (ctx, round: number): Promise<string> => {
      ctx.emit("rounds", round);
      ctx.send("mail", `round ${round}`);
      ctx.send("mail", `round ${round} again`);
      await ctx.sleep("1 s");
      return round === 3 ? "over" : ctx.continueAsNew(round + 1);
    },
  );
  let broken = true;
  await using engine = await createTestEngine({
    definitions: [rounds],
    outbox: {
      async mail(payload, key) {
        if (broken) throw new Error("not yet");
        await ledger.take(payload, key);
      },
    },
  });
  const run = await engine.start(rounds, 1);
  for (let n = 0; n < 3; n += 1) {
    await engine.clock.advance("500 ms");
    await engine.crash();
  }
  expect(await run.result()).toBe("over");
  expect(await collect(run.stream("rounds"))).toEqual([1, 2, 3].map((value) => ({ offset: value, value })));
  broken = false;
  await engine.clock.advance("5 minutes");
  expect(ledger.arrived.map(({ payload }) => payload)).toEqual(
    [1, 2, 3].flatMap((round) => [`round ${round}`, `round ${round} again`]),
  );
  expect(new Set(ledger.arrived.map(({ key }) => key)).size).toBe(6);
});
