// AbortSignal: every call that waits takes one.

import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import {
  append,
  createClient,
  createEngine,
  graph,
  promise,
  query,
  queue,
  signal as signalPort,
  START,
  stream,
  task,
  update,
  workflow,
  type Client,
  type Run,
  type StoreSource,
} from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, createFreezer, createGate, macrotask, rejection, until, within } from "./world.ts";

const ports = {
  go: promise<string>(),
  words: stream<string>(),
  ask: update<string, string>(),
  state: query<string>(),
  note: signalPort<string>(),
};
const WHY = new Error("the request was closed");
const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

describe("every call that waits for the store", () => {
  const steps = graph("steps", { state: { seen: append<string>() }, ports: { go: promise<string>() } })
    .node("one", async (ctx) => {
      await ctx.promise("go");
      return { seen: ["one"] };
    })
    .edge(START, "one");
  const limited = queue("limited", { concurrency: 1 });
  const work = task("work", { queue: limited }, () => "done");
  const talks = workflow("talks", { ports }, async (ctx) => ctx.promise("go"));
  const known = [steps, talks, work];
  type AnyClient = Client<typeof steps | typeof talks>;
  type Call = (client: AnyClient, run: Run<typeof steps>, signal: AbortSignal) => Promise<unknown>;
  const talksOf = (client: AnyClient): Run<typeof talks> => client.get(talks, "t");
  const every = { every: "1 h" } as const;
  const past = (): Date => new Date(Date.now() - 1_000);

  const calls: readonly (readonly [name: string, call: Call])[] = [
    ["start", (client, _run, signal) => client.start(steps, {}, { id: "never", signal })],
    ["find", (client, _run, signal) => client.find("g", { signal })],
    ["list", (client, _run, signal) => collect(client.list({}, { signal }))],
    ["bulk", (client, _run, signal) => client.bulk("pause", {}, { signal })],
    ["schedule", (client, _run, signal) => client.schedule("daily", steps, {}, { ...every, signal })],
    ["findSchedule", (client, _run, signal) => client.findSchedule("hourly", { signal })],
    ["listSchedules", (client, _run, signal) => collect(client.listSchedules({ signal }))],
    ["findQueue", (client, _run, signal) => client.findQueue(limited, { signal })],
    ["listQueues", (client, _run, signal) => collect(client.listQueues({ signal }))],
    ["pause of a queue", (client, _run, signal) => client.getQueue(limited).pause({ signal })],
    ["resume of a queue", (client, _run, signal) => client.getQueue(limited).resume({ signal })],
    ["limit of a queue", (client, _run, signal) => client.getQueue(limited).limit({ concurrency: 2 }, { signal })],
    ["info of a schedule", (client, _run, signal) => client.getSchedule("hourly").info({ signal })],
    ["pause of a schedule", (client, _run, signal) => client.getSchedule("hourly").pause({ signal })],
    ["resume of a schedule", (client, _run, signal) => client.getSchedule("hourly").resume({ signal })],
    ["trigger of a schedule", (client, _run, signal) => client.getSchedule("hourly").trigger({ signal })],
    ["backfill", (client, _run, signal) => client.getSchedule("hourly").backfill(past(), past(), { signal })],
    ["remove of a schedule", (client, _run, signal) => client.getSchedule("hourly").remove({ signal })],
    ["result", (_client, run, signal) => run.result({ signal })],
    ["info", (_client, run, signal) => run.info({ signal })],
    ["signal", (client, _run, signal) => talksOf(client).signal("note", "n", { signal })],
    ["resolve", (_client, run, signal) => run.resolve("go", "now", { signal })],
    ["reject", (_client, run, signal) => run.reject("go", new Error("no"), { signal })],
    ["query", (client, _run, signal) => talksOf(client).query("state", undefined, { signal })],
    ["update", (client, _run, signal) => talksOf(client).update("ask", "a", { signal })],
    ["cancel", (_client, run, signal) => run.cancel("why", { signal })],
    ["terminate", (_client, run, signal) => run.terminate("why", { signal })],
    ["pause", (_client, run, signal) => run.pause({ signal })],
    ["resume", (_client, run, signal) => run.resume({ signal })],
    ["retry", (_client, run, signal) => run.retry({ signal })],
    ["scheduler", (_client, run, signal) => run.scheduler({ signal })],
    ["stream", (client, _run, signal) => collect(talksOf(client).stream("words", { signal }))],
    ["journal", (_client, run, signal) => collect(run.journal({ signal }))],
    ["attempts", (_client, run, signal) => collect(run.attempts({ signal }))],
    ["checkpoints", (_client, run, signal) => collect(run.checkpoints({ signal }))],
    ["checkpoint", (_client, run, signal) => run.checkpoint(0, { signal })],
    ["stateAt", (_client, run, signal) => run.stateAt(0, { signal })],
    ["fork", (_client, run, signal) => run.fork({ step: 0, id: "fork", signal })],
    ["diff", (_client, run, signal) => run.diff(run, { signal })],
    ["replay", (_client, run, signal) => run.replay({ signal })],
    ["verify", (_client, run, signal) => run.verify({ signal })],
  ];

  test("ends with the reason while the store does not answer, and leaves no listener", async () => {
    using folder = createFolder();
    const path = folder.file("store.db");
    const frozen = createFreezer(path);
    await using engine = await createEngine({ store: `sqlite:${path}`, definitions: known, logger: false });
    await engine.start(talks, undefined, { id: "t" });
    await engine.start(steps, {}, { id: "g" });
    await engine.schedule("hourly", steps, {}, every);
    await until(async () => (await engine.find("g"))?.status === "waiting");
    await using client = await createClient({ store: frozen, definitions: known, logger: false });
    const run = client.get(steps, "g");
    for (const [name, call] of calls) {
      const controller = new AbortController();
      frozen.freeze();
      const waiting = rejection(call(client, run, controller.signal));
      await macrotask();
      expect(listeners(controller.signal), name).toBeGreaterThan(0);
      controller.abort(WHY);
      expect(await within(1_000, waiting), name).toBe(WHY);
      expect(listeners(controller.signal), name).toBe(0);
      frozen.thaw();
      await macrotask();
    }
  });

  test("does nothing if its signal is aborted already, and refuses what is no signal", async () => {
    await using engine = await createTestEngine({ definitions: known });
    await engine.start(talks, undefined, { id: "t" });
    const run = await engine.start(steps, {}, { id: "g" });
    await engine.schedule("hourly", steps, {}, every);
    const before = await collect(run.journal());
    for (const [name, call] of calls) {
      const tried = async (signal: AbortSignal): Promise<unknown> => call(engine, run, signal);
      expect(await rejection(tried(AbortSignal.abort(WHY))), name).toBe(WHY);
      const error = await rejection(tried("stop" as never));
      expect([error.code, error.message], name).toEqual(["BAD_OPTIONS", expect.stringContaining("AbortSignal")]);
    }
    expect(await collect(run.journal())).toEqual(before);
    expect((await collect(engine.list())).map(({ id }) => id)).toEqual(["g", "t"]);
    expect((await collect(engine.listSchedules())).map(({ name }) => name)).toEqual(["hourly"]);
    expect((await run.info()).status).toBe("waiting");
  });

  test("has no listener after it was answered", async () => {
    await using engine = await createTestEngine({ definitions: known });
    await engine.start(talks, undefined, { id: "t" });
    const run = await engine.start(steps, {}, { id: "g" });
    await engine.schedule("hourly", steps, {}, every);
    const { signal } = new AbortController();
    // These wait for the run.
    const open = new Set(["result", "query", "update", "stream"]);
    for (const [name, call] of calls) {
      if (open.has(name)) continue;
      await call(engine, run, signal).catch(() => {});
      expect(listeners(signal), name).toBe(0);
    }
  });
});

test.each(["drain", "close"] as const)(
  "an aborted %s rejects with the reason, and the engine still stops",
  async (how) => {
    const gate = createGate();
    const busy = workflow("busy", async (ctx) => ctx.run("long", () => gate.wait()));
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [busy] });
    await engine.start(busy);
    await gate.reached;
    const controller = new AbortController();
    const stopping = rejection(engine[how]({ grace: "1 h", signal: controller.signal }));
    await macrotask();
    controller.abort(WHY);
    expect(await within(1_000, stopping)).toBe(WHY);
    expect(listeners(controller.signal)).toBe(0);
    expect((await rejection(engine.start(busy))).code).toBe("ENGINE_CLOSED");
    gate.open();
  },
);

test.each([createEngine, createClient])(
  "%o: an aborted wait for the store rejects, and what opens later is closed",
  async (create) => {
    const gate = createGate();
    let closed = 0;
    const source: StoreSource = {
      async "~open"(options) {
        await gate.wait();
        return new Proxy(await sqlite(":memory:")["~open"](options), {
          get(target, key) {
            const value: unknown = Reflect.get(target, key);
            if (typeof value !== "function") return value;
            if (key !== "close") return value.bind(target) as unknown;
            return async () => {
              closed += 1;
              await target.close();
            };
          },
        });
      },
    };
    const controller = new AbortController();
    const opening = rejection(create({ store: source, definitions: [], signal: controller.signal }));
    await gate.reached;
    controller.abort(WHY);
    expect(await within(1_000, opening)).toBe(WHY);
    expect(listeners(controller.signal)).toBe(0);
    gate.open();
    await until(async () => closed === 1);
  },
);

test("an aborted replay that executes a copy of the run aborts the functions of the copy", async () => {
  let isCopy = false;
  const started = createGate();
  const stopped = Promise.withResolvers<unknown>();
  const g = graph("g", { state: { seen: append<string>() } })
    .node("one", async () => ({ seen: ["one"] }))
    .node("two", async (ctx) => {
      if (!isCopy) return { seen: ["two"] };
      ctx.abortSignal.addEventListener("abort", () => stopped.resolve(ctx.abortSignal.reason));
      await started.wait();
      return {};
    })
    .edge(START, "one")
    .edge("one", "two");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await run.result();
  isCopy = true;
  const controller = new AbortController();
  const replaying = rejection(run.replay({ mode: "resume", from: 1, signal: controller.signal }));
  await started.reached;
  controller.abort(WHY);
  expect(await within(1_000, replaying)).toBe(WHY);
  expect(await within(5_000, stopped.promise)).toMatchObject({ code: "CANCELLED" });
  expect(listeners(controller.signal)).toBe(0);
});
