// Control: cancel, pause, resume, terminate and deadlines of a graph in the middle of a step.

import { expect, test } from "vitest";
import {
  append,
  createEngine,
  END,
  graph,
  last,
  promise,
  START,
  stream,
  task,
  workflow,
  type RepriseError,
} from "reprise";
import { sqlite } from "reprise/sqlite";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, rejection, storeAround, until, within } from "../engine/world.ts";

const unchanged = () => storeAround((_writes, apply) => apply());
const ITEMS = [0, 1, 2, 3, 4, 5, 6, 7];

test("cancel within a second: the AbortSignal of every running node of a fan-out fires, also in its steps, tasks and children", async () => {
  const heard: string[] = [];
  const begun: string[] = [];
  const hang = (signal: AbortSignal, who: string): Promise<never> => {
    begun.push(who);
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        heard.push(who);
        reject(new Error(`${who} stops`));
      });
    });
  };
  const slow = task("slow", (ctx) => hang(ctx.abortSignal, "task"));
  const child = workflow("child", async (ctx) => ctx.run("in child", (op) => hang(op.abortSignal, "child")));
  const g = graph("wide", { state: {}, maxConcurrentNodes: 9 })
    .node("each", async (ctx, _state, item: number) => {
      if (item < 8) await hang(ctx.abortSignal, `node ${item}`);
      const step = ctx.run("step", (op) => hang(op.abortSignal, "step"));
      await Promise.all([step, ctx.task(slow), ctx.child(child)]);
    })
    .spread(START, "each", () => [...ITEMS, 8]);
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g, slow, child] });
  const run = await engine.start(g, {});
  await until(() => begun.length === 11);
  const cancelled = run.cancel("enough").then(() => rejection(run.result()));
  expect(await within(1_000, cancelled)).toMatchObject({ code: "CANCELLED" });
  await until(() => heard.length === 11);
  expect(heard.toSorted()).toEqual(begun.toSorted());
  expect((await run.info()).status).toBe("cancelled");
});

test("a terminated graph ends at once: running nodes are aborted, waiting ones never continue, and nothing more is written", async () => {
  const aborted = createGate();
  let went = 0;
  const g = graph("pair", { state: {}, ports: { go: promise() } })
    .node("works", async (ctx) => {
      ctx.abortSignal.addEventListener("abort", () => aborted.open());
      await aborted.wait();
      await ctx.run("late", () => (went += 1));
    })
    .node("waits", async (ctx) => {
      await ctx.promise("go");
      went += 1;
    })
    .edge(START, ["works", "waits"]);
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await aborted.reached;
  await run.terminate("enough");
  await aborted.opened;
  expect(await rejection(run.result())).toMatchObject({ code: "CANCELLED" });
  const { entries } = await run.info();
  await engine.clock.advance("1 minute");
  expect(await run.info()).toMatchObject({ status: "cancelled", entries });
  expect(went).toBe(0);
  expect(await source.store.check()).toEqual([]);
});

test("after a pause in the middle of a fan-out, running items finish and the others start after resume, also in another process", async () => {
  const ran: number[] = [];
  const gate = createGate();
  const g = graph("wide", { state: { seen: append<number>() }, maxConcurrentNodes: 2 })
    .node("each", async (_ctx, _state, item: number) => {
      ran.push(item);
      if (ran.length <= 2) await gate.wait();
      return { seen: [item] };
    })
    .spread(START, "each", () => ITEMS);
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await gate.reached;
  await until(() => ran.length === 2);
  await run.pause();
  gate.open();
  await engine.clock.advance("1 minute");
  expect(ran).toHaveLength(2);
  expect((await run.info()).status).toBe("paused");
  const ended = (await collect(run.journal())).filter(({ type }) => type === "NodeCompleted");
  expect(ended).toHaveLength(2);
  await engine.crash();
  await engine.clock.advance("1 minute");
  expect(ran).toHaveLength(2);
  await run.resume();
  expect(await run.result()).toEqual({ seen: ITEMS });
  expect(ran.toSorted()).toEqual(ITEMS);
  expect(await source.store.check()).toEqual([]);
});

test("a graph paused and resumed in the middle of its steps ends the same, killed at every commit", async () => {
  const g = graph("paused", { state: { seen: append<string>() }, maxConcurrentNodes: 2 })
    .node("each", async (ctx, _state, item: number) => ({ seen: [await ctx.run("say", () => `item ${item}`)] }))
    .node("end", async () => ({ seen: ["end"] }))
    .spread(START, "each", () => [0, 1, 2])
    .edge("each", "end");
  const { output, crashes } = await crashEverywhere(
    g,
    {},
    {
      drive: async (engine, id) => {
        const run = engine.get(g, id);
        await run.pause().catch(() => {});
        await engine.clock.advance(0);
        await run.resume().catch(() => {});
      },
    },
  );
  expect(output).toEqual({ seen: ["item 0", "item 1", "item 2", "end"] });
  expect(crashes).toBeGreaterThan(6);
}, 60_000);

test("bulk pause, resume, retry, cancel and terminate reach graphs like other runs", async () => {
  let broken = true;
  const g = graph("many", { state: { n: last(0) }, ports: { go: promise() } })
    .node("first", async () => {
      if (broken) throw new Error("broken");
    })
    .node("waits", async (ctx) => {
      await ctx.promise("go");
    })
    .edge(START, "first")
    .edge("first", "waits");
  await using engine = await createTestEngine({ definitions: [g] });
  const filter = { definition: "many" } as const;
  const statuses = async (): Promise<string[]> => {
    await engine.clock.advance(0);
    return (await collect(engine.list(filter))).map(({ status }) => status);
  };
  for (const id of ["a", "b"]) await engine.start(g, {}, { id });
  expect(await statuses()).toEqual(["failed", "failed"]);
  broken = false;
  expect(await engine.bulk("retry", { ...filter, status: "failed" })).toMatchObject({ count: 2 });
  expect(await statuses()).toEqual(["waiting", "waiting"]);
  expect(await engine.bulk("pause", { ...filter, status: "waiting" })).toMatchObject({ count: 2 });
  expect(await statuses()).toEqual(["paused", "paused"]);
  expect(await engine.bulk("resume", { ...filter, status: "paused" })).toMatchObject({ count: 2 });
  expect(await statuses()).toEqual(["waiting", "waiting"]);
  expect(await engine.bulk("cancel", { ...filter, status: "waiting" })).toMatchObject({ count: 2 });
  expect(await statuses()).toEqual(["cancelled", "cancelled"]);
  await engine.start(g, {}, { id: "c" });
  await engine.clock.advance(0);
  expect(await engine.bulk("terminate", { ...filter, status: "waiting" })).toMatchObject({ count: 1 });
  expect(await statuses()).toEqual(["cancelled", "cancelled", "cancelled"]);
});

test("a deadline aborts every running or waiting node of a graph and fails the run, also after a crash", async () => {
  const aborted: string[] = [];
  const g = graph("late", { state: {}, ports: { go: promise() }, deadline: "1 hour" })
    .node("works", { timeout: "1 day" }, async (ctx) => {
      await new Promise<void>((resolve) => {
        ctx.abortSignal.addEventListener("abort", () => {
          aborted.push("works");
          resolve();
        });
      });
    })
    .node("waits", async (ctx) => {
      await ctx.promise("go").catch((error: unknown) => {
        aborted.push(String((error as RepriseError).code));
        throw error;
      });
    })
    .edge(START, ["works", "waits"]);
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await engine.clock.advance("30 minutes");
  await engine.crash();
  await engine.clock.advance("30 minutes");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "DEADLINE_EXCEEDED" } });
  await until(() => aborted.includes("works") && aborted.includes("DEADLINE_EXCEEDED"));
  expect((await run.info()).status).toBe("failed");
  expect(await source.store.check()).toEqual([]);
});

test("a result too large for a payload fails its node by name, and a retry with fixed code continues", async () => {
  let size = 2_000;
  const g = graph("big", { state: { text: last("") } })
    .node("writes", async () => ({ text: "x".repeat(size) }))
    .edge(START, "writes");
  await using engine = await createTestEngine({ definitions: [g], limits: { payload: 1_000 } });
  const run = await engine.start(g, {});
  const { cause } = await rejection(run.result());
  expect(cause).toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
  expect((cause as Error).message).toContain("The result of node writes cannot be stored: $.change.text");
  size = 10;
  await run.retry();
  expect(await run.result()).toEqual({ text: "x".repeat(10) });
});

test("a step with more entries than the limit blocks its graph and says what to do; many steps do not", async () => {
  const g = graph("long", { state: { text: last(""), n: last(0) }, maxSteps: 100 })
    .node("add", async (_ctx, state) => ({ n: state.n + 1, text: `${state.n}`.repeat(9_000) }))
    .node("each", async (_ctx, _state, _item: number) => {})
    .edge(START, "add")
    .edge("add", "add", (state) => state.n < 40)
    .spread("add", "each", () => ITEMS);
  using folder = createFolder();
  const store = `sqlite:${folder.file("g.db")}`;
  {
    await using engine = await createTestEngine({ definitions: [g], store, limits: { entries: 8 } });
    const run = await engine.start(g, {}, { id: "r" });
    const error = (await rejection(run.result())) as RepriseError;
    expect(error).toMatchObject({ code: "RUN_BLOCKED", details: { code: "JOURNAL_TOO_LONG", expected: 8 } });
    expect(error.message).toContain("since its last full checkpoint");
    expect(error.message).toContain("fewer items per step");
    expect(error.message).not.toContain("continueAsNew");
    expect((await run.info()).entries).toBeGreaterThan(80);
  }
  await using engine = await createTestEngine({ definitions: [g], store, limits: { entries: 100 } });
  const run = engine.get(g, "r");
  await run.resume();
  expect((await run.result()).n).toBe(40);
});

test("a retried node runs the user SQL of each attempt once, and keeps chunks and answers in order", async () => {
  using folder = createFolder();
  const store = sqlite(folder.file("g.db"));
  const g = graph("tries", { state: { rows: last(0) }, ports: { words: stream<string>(), go: promise<string>() } })
    .node("writes", { retry: { maxAttempts: 3, baseDelay: "1 s", maxDelay: "1 s" } }, async (ctx) => {
      ctx.emit("words", `attempt ${ctx.attempt}`);
      await ctx.tx("note", sqlite, (db) => {
        db.exec("create table if not exists notes (attempt integer)");
        db.prepare("insert into notes values (?)").run(ctx.attempt);
      });
      const said = await ctx.promise("go");
      if (ctx.attempt < 3) throw new Error(said);
      return {
        rows: await ctx.tx("count", sqlite, (db) => Number(db.prepare("select count(*) as n from notes").get()!["n"])),
      };
    })
    .edge(START, "writes");
  await using engine = await createTestEngine({ definitions: [g], store });
  const run = await engine.start(g, {});
  await run.resolve("go", "again");
  await engine.clock.advance("10 s");
  expect(await run.result()).toEqual({ rows: 3 });
  const words = (await collect(run.stream("words"))).map(({ value, reset }) => value ?? reset?.execution);
  expect(words).toEqual(["attempt 1", 2, "attempt 2", 3, "attempt 3"]);
});

test("continueAsNew, patched, sleep and state are not part of a node's context", async () => {
  let has: readonly string[] = [];
  const g = graph("looks", { state: {} })
    .node("look", async (ctx) => {
      has = ["continueAsNew", "patched", "sleep", "receive", "state", "shield"].filter((name) => name in ctx);
    })
    .edge(START, "look")
    .edge("look", END);
  await using engine = await createTestEngine({ definitions: [g] });
  await (await engine.start(g, {})).result();
  expect(has).toEqual([]);
});
