// engine.promises: the promises that live runs wait for.

import {
  createClient,
  createEngine,
  graph,
  last,
  promise,
  signal,
  START,
  workflow,
  type OpenPromiseInfo,
  type Run,
} from "reprise";
import { createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, createGate, rejection, until } from "./world.ts";

const release = workflow(
  "release",
  { ports: { approve: promise<boolean>(), note: signal<string>() } },
  async (ctx, people: readonly string[]) => {
    const note = ctx.receive("note");
    const asked = people.map((key) => ctx.promise("approve", { key, show: { ask: key } }));
    const answers = await Promise.all(asked);
    return [...answers, await note];
  },
);
const pay = workflow("pay", { ports: { paid: promise<number>() } }, (ctx) =>
  ctx.promise("paid", { timeout: "1 hour" }),
);

async function waiting<R extends Run<any>>(run: R): Promise<R> {
  await until(async () => (await run.info()).status === "waiting");
  return run;
}

function brief(promises: readonly OpenPromiseInfo[]): readonly string[] {
  return promises.map(({ runId, name, key = "" }) => `${runId} ${name} ${key}`.trim());
}

test("open promises of all runs are listed with what they show and when they time out; waits for signals are not", async () => {
  const now = new Date("2030-01-01T00:00:00Z");
  await using engine = await createTestEngine({ definitions: [release, pay], now });
  await waiting(await engine.start(release, ["ann", "bob"], { id: "release-1" }));
  await waiting(await engine.start(pay, undefined, { id: "pay-1" }));
  await engine.clock.advance("1 minute");
  expect(await collect(engine.promises())).toEqual([
    {
      runId: "release-1",
      definition: "release",
      kind: "promise",
      name: "approve",
      key: "ann",
      show: { ask: "ann" },
      createdAt: now,
      cursor: expect.any(String) as string,
    },
    expect.objectContaining({ runId: "release-1", key: "bob", show: { ask: "bob" } }),
    {
      runId: "pay-1",
      definition: "pay",
      kind: "promise",
      name: "paid",
      createdAt: now,
      deadline: new Date("2030-01-01T01:00:00Z"),
      cursor: expect.any(String) as string,
    },
  ]);
});

test("a list of promises is filtered by name and definition, and continues after a cursor", async () => {
  await using engine = await createTestEngine({ definitions: [release, pay] });
  for (const id of ["release-1", "release-2"])
    await waiting(await engine.start(release, ["ann", "bob", "eve"], { id }));
  await waiting(await engine.start(pay, undefined, { id: "pay-1" }));
  const list = async (filter?: Parameters<typeof engine.promises>[0]) => collect(engine.promises(filter));
  expect(brief(await list({ name: "paid" }))).toEqual(["pay-1 paid"]);
  expect(brief(await list({ definition: "pay" }))).toEqual(["pay-1 paid"]);
  expect(await list({ name: "paid", definition: "release" })).toEqual([]);
  const first = await list({ name: "approve", limit: 2 });
  expect(brief(first)).toEqual(["release-1 approve ann", "release-1 approve bob"]);
  const rest = await list({ name: "approve", after: first.at(-1)!.cursor });
  expect(brief(rest)).toEqual([
    "release-1 approve eve",
    "release-2 approve ann",
    "release-2 approve bob",
    "release-2 approve eve",
  ]);
  expect(brief(await list({ after: rest.at(-1)!.cursor }))).toEqual(["pay-1 paid"]);
  expect(await list({ limit: 0 })).toEqual([]);
  for (const wrong of [{ after: "x" }, { limit: -1 }, { name: "" }, { names: "approve" }] as object[])
    expect((await rejection(list(wrong))).code).toMatch(/^BAD_/);
});

test("a list of promises has more than one page", async () => {
  await using engine = await createTestEngine({ definitions: [release] });
  const people = Array.from({ length: 130 }, (_, n) => String(n));
  for (const id of ["release-1", "release-2"]) await waiting(await engine.start(release, people, { id }));
  const listed = await collect(engine.promises({ name: "approve" }));
  expect(new Set(brief(listed)).size).toBe(260);
  expect(await collect(engine.promises())).toHaveLength(260);
});

test("a settled promise, one that timed out, and those of a run that ended are not listed", async () => {
  await using engine = await createTestEngine({ definitions: [release, pay] });
  const list = async () => brief(await collect(engine.promises()));
  const people = ["ann", "bob", "eve"];
  const settled = await engine.start(release, people, { id: "settled" });
  await waiting(await engine.start(pay, undefined, { id: "pay-1" }));
  await settled.resolve("approve", true, { key: "bob" });
  await expect.poll(list).toEqual(["settled approve ann", "settled approve eve", "pay-1 paid"]);
  await engine.crash();
  await settled.resolve("approve", true, { key: "eve" });
  await expect.poll(list).toEqual(["settled approve ann", "pay-1 paid"]);
  await engine.clock.advance("1 hour");
  await expect.poll(list).toEqual(["settled approve ann"]);
  await settled.cancel();
  await rejection(settled.result());
  expect(await list()).toEqual([]);
  const terminated = await engine.start(release, people, { id: "terminated" });
  await expect.poll(list).toHaveLength(3);
  await terminated.terminate();
  expect(await list()).toEqual([]);
});

test("a paused run's promises are listed, and a retried run's are listed again", async () => {
  let isBroken = true;
  const steps = workflow("steps", { ports: { go: promise(), other: promise() } }, async (ctx) => {
    const other = ctx.promise("other", { show: "first" });
    await ctx.promise("go");
    await ctx.run("work", () => {
      if (isBroken) throw new Error("broken");
    });
    await other;
  });
  await using engine = await createTestEngine({ definitions: [steps] });
  const run = await waiting(await engine.start(steps, undefined, { id: "steps-1" }));
  const list = async () => brief(await collect(engine.promises()));
  await run.pause();
  expect(await list()).toEqual(["steps-1 other", "steps-1 go"]);
  await run.resume();
  await run.resolve("go");
  await rejection(run.result());
  expect(await list()).toEqual([]);
  isBroken = false;
  await run.retry();
  expect(await list()).toEqual(["steps-1 other"]);
  await run.resolve("other");
  await run.result();
  expect(await list()).toEqual([]);
});

test("a promise that the code waits for twice is listed once, until both waits are over", async () => {
  const twice = workflow("twice", { ports: { go: promise<number>(), end: promise() } }, async (ctx) => {
    const short = ctx.promise("go", { timeout: "1 hour" });
    const end = ctx.promise("end");
    const long = ctx.promise("go", { timeout: "2 hours" });
    await end;
    return [await short, await long];
  });
  await using engine = await createTestEngine({ definitions: [twice] });
  const run = await waiting(await engine.start(twice, undefined, { id: "twice-1" }));
  const list = async () => brief(await collect(engine.promises()));
  expect((await list()).toSorted()).toEqual(["twice-1 end", "twice-1 go"]);
  await engine.clock.advance("1 hour");
  expect((await list()).toSorted()).toEqual(["twice-1 end", "twice-1 go"]);
  await run.resolve("go", 1);
  await expect.poll(list).toEqual(["twice-1 end"]);
  await run.resolve("end");
  expect(await run.result()).toEqual([undefined, 1]);
});

test("a value that came before the code waits leaves no open promise", async () => {
  const gate = createGate();
  const late = workflow("late", { ports: { go: promise<number>(), end: promise() } }, async (ctx) => {
    await ctx.run("work", () => gate.wait());
    const value = await ctx.promise("go", { timeout: "1 hour" });
    await ctx.promise("end");
    return value;
  });
  await using engine = await createTestEngine({ definitions: [late] });
  const run = await engine.start(late, undefined, { id: "late-1" });
  await gate.reached;
  await run.resolve("go", 7);
  gate.open();
  await expect.poll(async () => brief(await collect(engine.promises()))).toEqual(["late-1 end"]);
  await run.resolve("end");
  expect(await run.result()).toBe(7);
});

test("a node's promise is listed while its attempt waits, also after a crash, and not after the node has ended", async () => {
  const review = graph("review", {
    state: { verdict: last(""), done: last(false) },
    ports: { verdict: promise<string>(), other: promise(), end: promise() },
  })
    .node("ask", async (ctx) => ({
      verdict: await Promise.race([ctx.promise("verdict"), ctx.promise("other").then(() => "")]),
    }))
    .node("finish", async (ctx) => {
      await ctx.promise("end");
      return { done: true };
    })
    .edge(START, "ask")
    .edge("ask", "finish");
  await using engine = await createTestEngine({ definitions: [review] });
  const run = await waiting(await engine.start(review, {}, { id: "review-1" }));
  const list = async () => brief(await collect(engine.promises())).toSorted();
  expect(await list()).toEqual(["review-1 other", "review-1 verdict"]);
  await engine.crash();
  expect(await list()).toEqual(["review-1 other", "review-1 verdict"]);
  await run.resolve("verdict", "good");
  await expect.poll(list).toEqual(["review-1 end"]);
  await run.resolve("end");
  expect(await run.result()).toEqual({ verdict: "good", done: true });
});

test("the promises of a generation are not listed after it continued as new", async () => {
  const rounds = workflow("rounds", { ports: { go: promise(), stop: promise() } }, async (ctx, round: number) => {
    if (round === 2) return ctx.promise("stop", { show: round });
    void ctx.promise("stop", { show: round });
    await ctx.promise("go");
    return ctx.continueAsNew(round + 1);
  });
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, 1, { id: "rounds-1" });
  await run.resolve("go");
  await expect.poll(async () => (await run.info()).generation).toBe(1);
  await expect
    .poll(async () => (await collect(engine.promises())).map(({ name, show }) => [name, show]))
    .toEqual([["stop", 2]]);
});

test("a client lists the promises of another process's runs", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  await using engine = await createEngine({ store, definitions: [pay] });
  await using client = await createClient({ store, definitions: [] });
  await waiting(await engine.start(pay, undefined, { id: "pay-1" }));
  await expect.poll(async () => brief(await collect(client.promises()))).toEqual(["pay-1 paid"]);
});
