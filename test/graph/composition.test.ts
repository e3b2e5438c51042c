// Composition: graphs with queues, schedules, versions, children, codecs and secrets.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  aesGcm,
  append,
  graph,
  last,
  promise,
  query,
  queue,
  rekey,
  signal,
  START,
  stream,
  task,
  update,
  workflow,
} from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection, storeAround } from "../engine/world.ts";

const ports = { go: promise() };

test("graphs wait in their queue, with a total limit and a limit per key, and the next starts when one has ended", async () => {
  const build = graph("build", {
    state: { team: last("") },
    ports,
    queue: queue("builds", { concurrency: 2, perKey: { concurrency: 1 } }),
    key: (input) => input.team ?? "none",
  })
    .node("build", async (ctx) => {
      await ctx.promise("go");
    })
    .edge(START, "build");
  await using engine = await createTestEngine({ definitions: [build] });
  const started = { a1: "a", a2: "a", b1: "b", c1: "c" };
  for (const [id, team] of Object.entries(started)) await engine.start(build, { team }, { id });
  const statuses = async (): Promise<string[]> => {
    await engine.clock.advance(0);
    return Promise.all(Object.keys(started).map(async (id) => (await engine.find(id))!.status));
  };
  expect(await statuses()).toEqual(["waiting", "queued", "waiting", "queued"]);
  await engine.get(build, "a1").resolve("go");
  expect(await statuses()).toEqual(["completed", "waiting", "waiting", "queued"]);
  await engine.get(build, "b1").resolve("go");
  expect(await statuses()).toEqual(["completed", "waiting", "completed", "waiting"]);
});

test("a graph that is a child waits in its definition's queue", async () => {
  const sub = graph("sub", { state: { n: last(0) }, ports, queue: queue("subs", { concurrency: 1 }) })
    .node("wait", async (ctx) => {
      await ctx.promise("go");
      return { n: 1 };
    })
    .edge(START, "wait");
  const top = graph("top", { state: { sum: append<number>() } })
    .node("each", async (ctx, _state, item: number) => ({
      sum: [(await ctx.child(sub, {}, { id: `sub ${item}` })).n],
    }))
    .spread(START, "each", () => [0, 1]);
  await using engine = await createTestEngine({ definitions: [top, sub] });
  const run = await engine.start(top, {});
  await engine.clock.advance(0);
  const found = await collect(engine.list({ definition: "sub" }));
  const begun = found.find(({ status }) => status === "waiting");
  const behind = found.find(({ status }) => status === "queued");
  for (const child of [begun, behind]) {
    await engine.get(sub, child!.id).resolve("go");
    await engine.clock.advance(0);
  }
  expect(await run.result()).toEqual({ sum: [1, 1] });
});

test.each([
  ["a key without a queue", { key: () => "a" }, "`key` has no effect without `queue`"],
  ["a queue per key without a key", { queue: queue("q", { perKey: { concurrency: 1 } }) }, "Add `key: (input)"],
  ["what is no queue", { queue: "builds" }, "queue"],
  ["a deadline of 0", { deadline: 0 }, "expected a deadline above 0"],
  ["a signal", { ports: { add: signal() } }, "port add is not made by promise() or stream() but by signal()"],
  ["a query", { ports: { total: query<number>() } }, "but by query(): a graph has no code that would receive it"],
  ["an update", { ports: { set: update<number>() } }, "but by update()"],
  ["what is no port", { ports: { word: {} } }, "port word is not made by promise() or stream()."],
  ["a list of ports", { ports: [] }, "expected an object of ports by name"],
  ["an option of workflows alone", { determinism: "strict" }, "determinism"],
])("%s is rejected when the graph is defined", (_what, options, message) => {
  let refused: unknown;
  try {
    graph("wrong", { state: {}, ...options } as never);
  } catch (error) {
    refused = error;
  }
  expect(refused).toMatchObject({ code: "BAD_OPTIONS" });
  expect((refused as Error).message).toContain("Graph wrong");
  expect((refused as Error).message).toContain(message);
});

test("a graph rejects signals, queries and updates by name, also with its start and from its parent", async () => {
  const g = graph("plain", { state: {}, ports: { go: promise(), words: stream<string>() } })
    .node("wait", async (ctx) => {
      await ctx.promise("go");
    })
    .edge(START, "wait");
  const parent = workflow("parent", async (ctx) => {
    const child = ctx.child(g, {});
    try {
      await child.signal("add" as never, 1 as never);
    } finally {
      await child.cancel();
    }
  });
  await using engine = await createTestEngine({ definitions: [g, parent] });
  const run = await engine.start(g, {});
  const refusal = { code: "UNKNOWN_PORT", message: expect.stringContaining("Graph plain has no") };
  await expect(run.signal("add" as never, 1 as never)).rejects.toMatchObject(refusal);
  await expect(run.query("total" as never)).rejects.toMatchObject(refusal);
  await expect(run.update("set" as never, 1 as never)).rejects.toMatchObject(refusal);
  await expect(engine.start(g, {}, { signals: { add: 1 } } as never)).rejects.toMatchObject(refusal);
  expect(await rejection((await engine.start(parent)).result())).toMatchObject({ cause: { code: "UNKNOWN_PORT" } });
});

test("graphs support delay, singleton, debounce, tags and priority", async () => {
  const g = graph("plain", { state: { n: last(0) }, ports })
    .node("wait", async (ctx) => {
      await ctx.promise("go");
    })
    .edge(START, "wait");
  await using engine = await createTestEngine({ definitions: [g] });
  const later = await engine.start(g, { n: 1 }, { delay: "1 hour", tags: ["x"], priority: 3 });
  await engine.clock.advance(0);
  expect((await later.info()).entries).toBe(1);
  await engine.clock.advance("1 hour");
  expect((await later.info()).entries).toBeGreaterThan(1);
  expect((await collect(engine.list({ tag: "x" }))).map(({ id }) => id)).toEqual([later.id]);
  const one = await engine.start(g, {}, { singleton: "only" });
  expect((await engine.start(g, {}, { singleton: "only" })).id).toBe(one.id);
  const first = await engine.start(g, { n: 1 }, { debounce: { key: "k", by: "1 minute" } });
  const second = await engine.start(g, { n: 2 }, { debounce: { key: "k", by: "1 minute" } });
  expect(second.id).toBe(first.id);
  await second.resolve("go");
  await engine.clock.advance("2 minutes");
  expect(await second.result()).toEqual({ n: 2 });
});

test("a schedule that must not overlap waits for its graph to end", async () => {
  const g = graph("nightly", { state: {}, ports })
    .node("wait", async (ctx) => {
      await ctx.promise("go");
    })
    .edge(START, "wait");
  await using engine = await createTestEngine({ definitions: [g] });
  await engine.schedule("hourly", g, {}, { every: "1 hour", overlap: "skip" });
  await engine.clock.advance("3 hours");
  const [first, ...others] = await collect(engine.list({ definition: "nightly" }));
  expect(others).toEqual([]);
  await engine.get(g, first!.id).resolve("go");
  await engine.clock.advance("1 hour");
  expect(await collect(engine.list({ definition: "nightly" }))).toHaveLength(2);
});

test("a graph is pinned to the version that started it; a new run uses the highest version, or the requested one", async () => {
  const define = (version: number) =>
    graph("checkout", { state: { said: last("") }, ports, version })
      .node("wait", async (ctx) => {
        await ctx.promise("go");
      })
      .node("say", async () => ({ said: `version ${version}` }))
      .edge(START, "wait")
      .edge("wait", "say");
  const [one, two] = [define(1), define(2)];
  const parent = workflow("parent", async (ctx) => (await ctx.child(one, {}, { id: "child" })).said);
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  {
    await using engine = await createTestEngine({ definitions: [one], store });
    await engine.start(one, {}, { id: "old" });
    await engine.clock.advance(0);
  }
  await using engine = await createTestEngine({ definitions: [one, two, parent], store });
  await engine.start("checkout", {}, { id: "new" });
  await engine.start(one, {}, { id: "asked" });
  const above = await engine.start(parent);
  await engine.clock.advance(0);
  const said: unknown[] = [];
  for (const id of ["old", "new", "asked", "child"]) {
    const run = engine.get("checkout", id);
    await run.resolve("go");
    said.push([(await run.result()).said, (await run.info()).version]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
  expect(said).toEqual([
    ["version 1", 1],
    ["version 2", 2],
    ["version 1", 1],
    ["version 1", 1],
  ]);
  expect(await above.result()).toBe("version 1");
});

const leaf = workflow("leaf", { ports }, async (ctx) => {
  await ctx.promise("go");
  return "leaf";
});
const middle = graph("middle", { state: { said: append<string>() } })
  .node("ask", async (ctx, _state, item: number) => ({
    said: [`${await ctx.child(leaf, undefined, { id: `leaf ${item}` })} ${item}`],
  }))
  .spread(START, "ask", () => [0, 1]);
const top = workflow("top", async (ctx) => (await ctx.child(middle, {}, { id: "middle" })).said);

test.each(["cancel", "deadline", "terminate"] as const)(
  "%s of a workflow reaches its graph, and the children of that graph's nodes",
  async (how) => {
    const source = storeAround((_writes, apply) => apply());
    await using engine = await createTestEngine({ definitions: [top, middle, leaf], store: source });
    const run = await engine.start(top, undefined, how === "deadline" ? { deadline: "1 hour" } : {});
    await engine.clock.advance(0);
    expect((await engine.find("leaf 1"))!.status).toBe("waiting");
    if (how === "deadline") await engine.clock.advance("1 hour");
    else await run[how]("enough");
    await rejection(run.result());
    await engine.clock.advance(0);
    for (const id of ["middle", "leaf 0", "leaf 1"])
      expect([id, (await engine.find(id))!.status]).toEqual([id, "cancelled"]);
    expect(await source.store.check()).toEqual([]);
  },
);

test("a workflow in a node of a graph in a workflow ends the same, killed at every commit", async () => {
  const { output, crashes } = await crashEverywhere(top, undefined, {
    definitions: [middle, leaf],
    drive: async (engine) => {
      await engine.clock.advance(0);
      for (const item of [0, 1])
        await engine
          .get(leaf as never, `leaf ${item}`)
          .resolve("go" as never, undefined as never)
          .catch(() => {});
    },
  });
  expect(output).toEqual(["leaf 0", "leaf 1"]);
  expect(crashes).toBeGreaterThan(20);
}, 60_000);

test("the error for a child id that an earlier attempt took says what to do; without an id every attempt has its own child", async () => {
  const quick = workflow("quick", async () => "done");
  const ids: string[] = [];
  const define = (name: string, id: string | undefined) =>
    graph(name, { state: { said: last("") } })
      .node("tries", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
        const child = ctx.child(quick, undefined, id === undefined ? {} : { id });
        ids.push(child.id);
        const said = await child;
        if (ctx.attempt === 1) throw new Error("once");
        return { said };
      })
      .edge(START, "tries");
  const [named, unnamed] = [define("named", "taken"), define("unnamed", undefined)];
  await using engine = await createTestEngine({ definitions: [named, unnamed, quick] });
  const refused = await engine.start(named, {});
  await engine.clock.advance("1 s");
  expect((await rejection(refused.result())).message).toContain("Leave out the id, and each attempt gets its own");
  ids.length = 0;
  const run = await engine.start(unnamed, {});
  await engine.clock.advance("1 s");
  expect(await run.result()).toEqual({ said: "done" });
  expect(new Set(ids).size).toBe(2);
});

test("a detached child of a node continues after its graph has ended", async () => {
  const g = graph("starts", { state: { id: last("") } })
    .node("start", async (ctx) => ({ id: ctx.child(leaf, undefined, { detached: true }).id }))
    .edge(START, "start");
  await using engine = await createTestEngine({ definitions: [g, leaf] });
  const { id } = await (await engine.start(g, {})).result();
  const child = engine.get(leaf, id);
  expect((await child.info()).status).not.toBe("cancelled");
  await child.resolve("go");
  expect(await child.result()).toBe("leaf");
});

test("a node that calls an unregistered task or child blocks its graph until the definition is registered", async () => {
  const price = task("price", () => 1);
  const g = graph("asks", { state: { n: last(0) } })
    .node("ask", async (ctx) => ({ n: await ctx.task(price) }))
    .edge(START, "ask");
  using folder = createFolder();
  const store = `sqlite:${folder.file("g.db")}`;
  {
    await using engine = await createTestEngine({ definitions: [g], store });
    const run = await engine.start(g, {}, { id: "r" });
    expect(await rejection(run.result())).toMatchObject({
      code: "RUN_BLOCKED",
      message: expect.stringContaining("Graph asks requests task `price`"),
    });
  }
  await using engine = await createTestEngine({ definitions: [g, price], store });
  const run = engine.get(g, "r");
  await run.resume();
  expect(await run.result()).toEqual({ n: 1 });
});

const CANARY = "canary-7f3a91c0";
const filesWith = (folder: string): string[] =>
  readdirSync(folder).filter((file) => readFileSync(join(folder, file)).includes(CANARY));

test("a graph's state, checkpoints, messages and results are encrypted, and can be rekeyed", async () => {
  const OLD = { one: Buffer.alloc(32, 1) };
  const codec = aesGcm({ keys: OLD, current: "one" });
  const newer = aesGcm({ keys: { ...OLD, two: Buffer.alloc(32, 2) }, current: "two" });
  const g = graph("secret", { state: { text: last(""), big: last("") }, ports: { word: promise<string>() } })
    .node("grow", async (_ctx, state) => ({ text: `${state.text}!`, big: `${CANARY} `.repeat(3_000) }))
    .node("send", async (ctx, state) => {
      ctx.send("mail", state.text);
      ctx.label("asked");
      return { text: await ctx.promise("word"), big: `${CANARY} `.repeat(3_000) };
    })
    .node("end", async (_ctx, state) => ({ text: `${state.text}?` }))
    .edge(START, "grow")
    .edge("grow", "send")
    .edge("send", "end");
  using folder = createFolder();
  const path = folder.file("e.db");
  const mail: unknown[] = [];
  const outbox = { mail: async (payload: unknown) => void mail.push(payload) };
  {
    await using engine = await createTestEngine({ store: `sqlite:${path}`, codec, definitions: [g], outbox });
    await engine.start(g, { text: CANARY }, { id: "r" });
    await engine.clock.advance("1 s");
  }
  expect(filesWith(folder.path)).toEqual([]);
  await rekey({ store: `sqlite:${path}`, codec: newer });
  const onlyTwo = aesGcm({ keys: { two: Buffer.alloc(32, 2) }, current: "two" });
  await using engine = await createTestEngine({ store: `sqlite:${path}`, codec: onlyTwo, definitions: [g], outbox });
  const run = engine.get(g, "r");
  await run.resolve("word", CANARY);
  expect((await run.result()).text).toBe(`${CANARY}?`);
  await engine.clock.advance("1 s");
  expect(mail).toEqual([`${CANARY}!`]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  await engine.close();
  expect(filesWith(folder.path)).toEqual([]);
});

test("a secret in the failure of a node is in no file, no log line and no error", async () => {
  const said: string[] = [];
  const note = (message: string, data?: object): void => void said.push(message, JSON.stringify(data));
  const g = graph("leaky", { state: {} })
    .node("leaks", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      ctx.log.info(`calling with ${CANARY}`);
      throw new Error(`401 for ${CANARY}`, { cause: new Error(CANARY) });
    })
    .edge(START, "leaks");
  using folder = createFolder();
  const store = `sqlite:${folder.file("g.db")}`;
  await using engine = await createTestEngine({
    definitions: [g],
    store,
    redact: { values: () => [CANARY] },
    logger: { info: note, warn: note, error: note },
  });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  expect((await rejection(run.result())).message).not.toContain(CANARY);
  await engine.close();
  expect(filesWith(folder.path)).toEqual([]);
  expect(said.join("\n")).not.toContain(CANARY);
  expect(said.length).toBeGreaterThan(0);
});
