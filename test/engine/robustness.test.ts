// Misbehaving user code, files and clocks: a failure affects one run only.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createClient, createEngine, flow, promise, task, typed, workflow, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { createFolder, createGate, rejection, type AnyStore } from "./world.ts";

const silent = { info() {}, warn() {}, error() {} };

function withGetter(key: string): Error {
  return Object.defineProperty(new Error("a"), key, {
    get() {
      throw new Error("do not read");
    },
  });
}
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const THROWN: readonly [what: string, make: () => unknown][] = [
  ["an error with a payload above the limit", () => Object.assign(new Error("big"), { body: "x".repeat(9_000_000) })],
  ["an error with a message above the limit", () => new Error("x".repeat(9_000_000))],
  ["an error whose message throws", () => withGetter("message")],
  ["an error whose stack throws", () => withGetter("stack")],
  ["an error whose name is a symbol", () => Object.defineProperty(new Error("a"), "name", { value: Symbol("x") })],
  ["an object that is no text", () => Object.create(null)],
  ["a revoked proxy", revoked],
];

test.each(THROWN)("%s fails the run like any other error, wherever it is thrown", async (_what, make) => {
  const retry = { maxAttempts: 2, baseDelay: 1 };
  const fails = async (): Promise<never> => {
    throw make();
  };
  const failing = task("failing", { retry }, fails);
  const child = workflow("child", fails);
  const subject = workflow("subject", async (ctx) => {
    const outcomes = await Promise.allSettled([
      ctx.run("once", fails),
      ctx.run("twice", fails, { retry }),
      ctx.task(failing),
      ctx.child(child),
    ]);
    if (outcomes.some(({ status }) => status === "fulfilled")) return "something did not fail";
    throw make();
  });
  await using engine = await createEngine({
    store: "sqlite::memory:",
    logger: silent,
    definitions: [subject, failing, child],
  });
  const run = await engine.start(subject);
  expect((await rejection(run.result())).code).toBe("RUN_FAILED");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test.each([
  [
    "with a getter that throws",
    () => ({
      get then() {
        throw new Error("do not read");
      },
    }),
  ],
  [
    "whose then throws",
    () => ({
      then() {
        throw new Error("do not call");
      },
    }),
  ],
  ["that is a revoked proxy", revoked],
])("a return value %s fails its operation and its task, and frees their slots", async (_what, make) => {
  const returns = task("returns", () => make());
  const subject = workflow("subject", async (ctx) => {
    const outcomes = await Promise.allSettled([ctx.run("a", () => make()), ctx.task(returns), ctx.run("b", () => "b")]);
    return outcomes.map(({ status }) => status);
  });
  await using engine = await createEngine({
    store: "sqlite::memory:",
    logger: silent,
    definitions: [subject, returns],
    worker: { concurrency: 1 },
  });
  const run = await engine.start(subject);
  expect(await run.result()).toEqual(["rejected", "rejected", "fulfilled"]);
});

test("a `retryable` function that throws fails the operation with that error", async () => {
  const retryable = (): boolean => {
    throw new Error("what is that?");
  };
  const subject = workflow("subject", async (ctx) =>
    ctx.run("a", () => Promise.reject(new Error("first")), { retry: { maxAttempts: 3, retryable } }),
  );
  await using engine = await createEngine({ store: "sqlite::memory:", logger: silent, definitions: [subject] });
  const error = await rejection((await engine.start(subject)).result());
  expect(error.cause).toMatchObject({
    code: "BAD_POLICY",
    message: expect.stringContaining("what is that?") as string,
  });
});

test("many operations that end at once wait behind slow ones without overflowing the stack", async () => {
  const gate = createGate();
  const subject = workflow("subject", async (ctx) => {
    const slow = ctx.run("slow", () => gate.wait());
    const all = await Promise.all([slow, ...Array.from({ length: 20_000 }, (_, n) => ctx.run("quick", () => n))]);
    return all.length;
  });
  await using engine = await createEngine({
    store: "sqlite::memory:",
    logger: silent,
    definitions: [subject],
    worker: { concurrency: 1 },
  });
  const run = await engine.start(subject);
  await gate.reached;
  gate.open();
  expect(await run.result()).toBe(20_001);
});

test("an invalid state key is refused before it becomes a command", async () => {
  const subject = workflow("subject", async (ctx) => {
    let refused = "";
    try {
      ctx.state.clear("\ud800");
    } catch (error) {
      refused = (error as { code: string }).code;
    }
    ctx.state.set("a", 1);
    await ctx.run("x", () => 1);
    return refused;
  });
  await using engine = await createEngine({ store: "sqlite::memory:", logger: silent, definitions: [subject] });
  const run = await engine.start(subject);
  expect(await run.result()).toBe("BAD_NAME");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("closing the engine starts no operation that waits for a slot", async () => {
  const gate = createGate();
  let calls = 0;
  const subject = workflow("subject", async (ctx) => {
    const operation = (): Promise<void> => {
      calls += 1;
      return gate.wait();
    };
    await Promise.all(Array.from({ length: 10 }, () => ctx.run("a", operation)));
  });
  const engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [subject],
    worker: { concurrency: 2 },
    logger: silent,
  });
  await engine.start(subject);
  await gate.reached;
  const closed = engine.close();
  gate.open();
  await closed;
  expect(calls).toBe(2);
});

/** A SQLite store with some methods replaced. */
function altered(path: string, change: (store: AnyStore) => Partial<AnyStore>): StoreSource {
  return {
    async "~open"(options) {
      const store = await sqlite(path)["~open"](options);
      const changed = change(store);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(changed, key) ?? Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

test("an engine closes although its store rejects every write", async () => {
  using folder = createFolder();
  let closed = false;
  const subject = workflow("subject", async (ctx) => ctx.run("a", () => 1));
  const store = altered(folder.file("runs.db"), (inner) => ({
    releaseWorker: () => Promise.reject(new Error("the disk is gone")),
    close: async () => {
      await inner.close();
      closed = true;
    },
  }));
  const engine = await createEngine({ store, definitions: [subject], logger: silent });
  expect((await rejection(engine.close())).message).toBe("the disk is gone");
  expect(closed).toBe(true);
});

test("close() waits for a drain in progress", async () => {
  const gate = createGate<string>();
  const subject = workflow("subject", async (ctx) => ctx.run("a", () => gate.wait()));
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const engine = await createEngine({ store, definitions: [subject], logger: silent });
  await engine.start(subject, undefined, { id: "run-1" });
  await gate.reached;
  const drained = engine.drain();
  const closed = engine.close();
  gate.open("finished");
  await Promise.all([drained, closed]);
  await using next = await createEngine({ store, definitions: [subject], logger: silent });
  expect(await next.get(subject, "run-1").result()).toBe("finished");
});

test("cancelling a parent does not cancel an unrelated run that has its child's id", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const stranger = workflow("stranger", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
  const child = workflow("child", async () => 1);
  const parent = workflow("parent", async (ctx) => ctx.child(child, undefined, { id: "taken" }));
  const definitions = [stranger, child, parent] as const;
  await using client = await createClient({ store, definitions });
  await client.start(stranger, undefined, { id: "taken" });
  const run = await client.start(parent);
  await run.cancel();
  await using _worker = await createEngine({ store, definitions });
  expect((await rejection(run.result())).code).toBe("CANCELLED");
  await client.get(stranger, "taken").resolve("go");
  expect(await client.get(stranger, "taken").result({ timeout: "5 s" })).toBeUndefined();
});

test("a worker that lost its lease continues although new runs keep arriving", async () => {
  using folder = createFolder();
  const path = folder.file("runs.db");
  const subject = workflow("subject", async (ctx) => ctx.run("a", () => 1));
  await using engine = await createEngine({
    store: `sqlite:${path}`,
    definitions: [subject],
    worker: { lease: 150 },
    logger: silent,
  });
  let over = false;
  const load = Array.from({ length: 8 }, async () => {
    while (!over) await engine.start(subject);
  });
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec("delete from workers");
  db.close();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const run = await engine.start(subject);
  const result = await run.result({ timeout: "5 s" }).catch((error: unknown) => error);
  over = true;
  await Promise.all(load);
  expect(result).toBe(1);
});

test.each([
  [
    "damaged",
    `update journal set data = cast(replace(cast(data as text), 'marked"', 'marked') as blob) where type = 'TaskScheduled'`,
  ],
  ["missing", "delete from journal where type = 'TaskScheduled' and cast(data as text) like '%marked%'"],
])("a task whose entry is %s stops its own run, and no other", async (_what, damage) => {
  using folder = createFolder();
  const path = folder.file("runs.db");
  const work = task("work", async (_ctx, text: string) => text);
  const subject = workflow("subject", async (ctx, text: string) => ctx.task(work, text));
  await using client = await createClient({ store: `sqlite:${path}`, definitions: [subject, work] });
  const damaged = await client.start(subject, "marked");
  const sound = await client.start(subject, "other");
  // A worker without the task schedules it, so it does not run before the bytes are changed.
  const gate = createGate();
  const held = task("work", async (_ctx, _text: string) => gate.wait());
  const scheduler = await createEngine({ store: `sqlite:${path}`, definitions: [subject, held], logger: silent });
  await gate.reached;
  await scheduler.close({ grace: 1 });
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec(damage);
  db.close();
  await using _worker = await createEngine({ store: `sqlite:${path}`, definitions: [subject, work], logger: silent });
  expect(await sound.result({ timeout: "5 s" })).toBe("other");
  expect((await rejection(damaged.result({ timeout: "5 s" }))).code).toBe("RUN_BLOCKED");
});

test.each([
  ["entry", "delete from journal where type = 'MessageSent' and cast(data as text) like '%lost%'"],
  ["run", "delete from runs where id = 'lost'"],
])("a message whose %s is missing does not stop the delivery of others", async (_what, damage) => {
  using folder = createFolder();
  const path = folder.file("runs.db");
  const subject = workflow("subject", async (ctx, text: string) => ctx.send("mail", text));
  const definitions = [subject];
  // A worker without a handler sends the messages, so they are not delivered before the rows are deleted.
  const sender = await createEngine({ store: `sqlite:${path}`, definitions, logger: silent });
  for (const text of ["lost", "sound"]) await (await sender.start(subject, text, { id: text })).result();
  await sender.close();
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec(damage);
  db.close();
  const delivered: unknown[] = [];
  const mail = (payload: unknown): void => void delivered.push(payload);
  await using _worker = await createEngine({ store: `sqlite:${path}`, definitions, outbox: { mail }, logger: silent });
  await expect.poll(() => delivered, { timeout: 5_000 }).toEqual(["sound"]);
});

test("a run whose row counts more read messages than it received does not stop the claims of other runs", async () => {
  using folder = createFolder();
  const path = folder.file("runs.db");
  const waits = workflow("waits", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
  const subject = workflow("subject", async (ctx) => ctx.run("one", () => 1));
  const definitions = [waits, subject];
  const first = await createEngine({ store: `sqlite:${path}`, definitions, logger: silent });
  const damaged = await first.start(waits);
  await expect.poll(async () => (await damaged.info()).status).toBe("waiting");
  await first.close();
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec("update runs set read = arrivals + 1, turn_due = 1");
  db.close();
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions, logger: silent });
  await using client = await createClient({ store: `sqlite:${path}`, definitions });
  const run = await client.start(subject);
  expect(await run.result({ timeout: "20 s" })).toBe(1);
  expect(await engine.find(run.id)).toMatchObject({ status: "completed" });
});

test("a flow whose values were changed in the database does not verify, although its code derives the same", async () => {
  using folder = createFolder();
  const path = folder.file("runs.db");
  const doubled = flow("doubled", { input: typed<number>() })
    .action("read", ["input"], (_ctx, { input }) => input)
    .output(["read"], ({ read }) => read);
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [doubled] });
  const run = await engine.start(doubled, 100);
  expect(await run.result()).toBe(100);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const db = new DatabaseSync(path, { timeout: 5_000 });
  db.exec(
    `update journal set data = cast(replace(cast(data as text), '100', '999') as blob) where type in ('NodeCompleted', 'RunCompleted')`,
  );
  db.close();
  const verdict = await run.verify();
  expect(verdict).toMatchObject({ status: "mismatch", where: expect.stringMatching(/^entry \d+$/) as string });
});

test("a timer that came due while the machine slept fires soon after", async () => {
  using folder = createFolder();
  let sleptMs = 0;
  const store: StoreSource = {
    "~open": (options) =>
      sqlite(folder.file("runs.db"))["~open"]({
        ...options,
        clock: { now: () => options.clock.now() + sleptMs, monotonic: () => options.clock.monotonic() },
      }),
  };
  const subject = workflow("subject", async (ctx) => {
    await ctx.sleep("1 hour");
    return "awake";
  });
  await using engine = await createEngine({ store, definitions: [subject], worker: { lease: 150 }, logger: silent });
  const run = await engine.start(subject);
  await new Promise((resolve) => setTimeout(resolve, 20));
  sleptMs = 2 * 3_600_000;
  expect(await run.result({ timeout: "5 s" })).toBe("awake");
});
