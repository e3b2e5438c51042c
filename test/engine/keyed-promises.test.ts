// Keyed promises: several promises of one port in one run, each settled once.

import { createClient, createEngine, graph, merge, promise, signal, START, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, rejection, storeAround } from "./world.ts";

const APPROVERS = ["ann", "bob", "eve"];

const release = workflow(
  "release",
  { ports: { approve: promise<{ ok: boolean }>() } },
  async (ctx, approvers: readonly string[]) => {
    const all = approvers.map((key) => ctx.promise("approve", { key, show: { ask: key } }));
    const answers = await Promise.all(all);
    return approvers.filter((_name, at) => answers[at]?.ok === true);
  },
);

test("the promises of one port wait in parallel, and each key gets its own value", async () => {
  await using engine = await createTestEngine({ definitions: [release] });
  const run = await engine.start(release, APPROVERS, { id: "release-1" });
  await run.resolve("approve", { ok: true }, { key: "eve" });
  await engine.crash();
  await run.resolve("approve", { ok: false }, { key: "ann", by: "Ann", reason: "tests fail" });
  await run.resolve("approve", { ok: true }, { key: "bob" });
  expect(await run.result()).toEqual(["bob", "eve"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  const entries = await collect(run.journal());
  expect(entries.find(({ command }) => command === "Promise(0)")?.data).toMatchObject({
    promiseId: "approve[ann]",
    key: "ann",
    show: { ask: "ann" },
  });
  expect(entries.findLast(({ command }) => command === "Promise(0)")?.data).toEqual({
    promiseId: "approve[ann]",
    key: "ann",
    by: "Ann",
    reason: "tests fail",
    value: { ok: false },
  });
});

test("the same value again succeeds and changes nothing; another value is refused with what was recorded", async () => {
  await using engine = await createTestEngine({ definitions: [release] });
  const run = await engine.start(release, APPROVERS, { id: "release-1" });
  await run.resolve("approve", { ok: true }, { key: "ann", by: "Ann", reason: "all green" });
  await run.resolve("approve", { ok: true }, { key: "ann", by: "a double click" });
  const refused = await rejection(run.resolve("approve", { ok: false }, { key: "ann" }));
  expect(refused).toMatchObject({ code: "PROMISE_ALREADY_RESOLVED", details: { by: "Ann", reason: "all green" } });
  expect(refused.message).toBe(
    "Promise approve[ann] of run release-1 is already resolved to { ok: true } by Ann (all green); the first value is kept.",
  );
  await run.pause();
  await run.reject("approve", new RangeError("too late"), { key: "bob" });
  await run.reject("approve", new RangeError("too late"), { key: "bob" });
  expect((await rejection(run.reject("approve", new Error("no"), { key: "bob" }))).message).toContain(
    "is already rejected with RangeError: too late;",
  );
  expect((await rejection(run.resolve("approve", { ok: true }, { key: "bob" }))).code).toBe("PROMISE_ALREADY_RESOLVED");
  await run.resume();
  expect((await rejection(run.result())).message).toContain("too late");
  const settled = (await collect(run.journal())).filter(({ type }) => /^Promise(?:Resolved|Rejected)$/.test(type));
  expect(settled.map(({ data }) => data)).toEqual([
    expect.objectContaining({ key: "ann", by: "Ann" }),
    expect.objectContaining({ key: "bob" }),
  ]);
});

test("a port without a key is another promise than the port with a key", async () => {
  const both = workflow("both", { ports: { go: promise<number>() } }, async (ctx) => [
    await ctx.promise("go", { key: "1" }),
    await ctx.promise("go"),
    await ctx.promise("go", { key: "1" }),
  ]);
  await using engine = await createTestEngine({ definitions: [both] });
  const run = await engine.start(both);
  await run.resolve("go", 7);
  await run.resolve("go", 8, { key: "1" });
  expect(await run.result()).toEqual([8, 7, 8]);
});

test("a keyed value may come before the start, and moves to the next generation if the code has not used it", async () => {
  const rounds = workflow("rounds", { ports: { go: promise<string>() } }, async (ctx, round: number) => {
    const value = await ctx.promise("go", { key: String(round) });
    return round === 2 ? value : ctx.continueAsNew(round + 1);
  });
  await using engine = await createTestEngine({ definitions: [rounds] });
  const ahead = engine.get(rounds, "rounds-1");
  await ahead.resolve("go", "second", { key: "2", by: "Ann", beforeStart: true });
  await ahead.resolve("go", "second", { key: "2", beforeStart: true });
  const run = await engine.start(rounds, 1, { id: "rounds-1" });
  await run.resolve("go", "first", { key: "1" });
  expect(await run.result()).toBe("second");
  const settled = (await collect(run.journal())).find(({ type }) => type === "PromiseResolved");
  expect(settled?.data).toMatchObject({ key: "2", by: "Ann" });
});

test("a value that moved to the next generation refuses another one with what was recorded", async () => {
  const moves = workflow("moves", { ports: { go: promise(), last: promise<string>() } }, async (ctx, round: number) => {
    if (round === 2) return ctx.promise("last", { key: "b" }).then((value) => ctx.promise("go").then(() => value));
    await ctx.promise("go");
    return ctx.continueAsNew(2);
  });
  await using engine = await createTestEngine({ definitions: [moves] });
  const run = await engine.start(moves, 1, { id: "moves-1" });
  await run.resolve("last", "kept", { key: "b", by: "Ann" });
  await run.resolve("go");
  await expect.poll(async () => (await run.info()).generation).toBe(1);
  expect((await rejection(run.resolve("last", "other", { key: "b" }))).message).toContain("resolved to 'kept' by Ann");
  await run.resolve("last", "kept", { key: "b" });
  await run.resolve("go");
  expect(await run.result()).toBe("kept");
});

test("a keyed promise times out on its own", async () => {
  const two = workflow("two", { ports: { go: promise<string>() } }, (ctx) =>
    Promise.all([
      ctx.promise("go", { key: "fast", timeout: "1 hour" }),
      ctx.promise("go", { key: "slow", timeout: "2 hours" }),
    ]),
  );
  await using engine = await createTestEngine({ definitions: [two] });
  const run = await engine.start(two);
  await engine.clock.advance("90 minutes");
  await run.resolve("go", "in time", { key: "slow" });
  expect(await run.result()).toEqual([undefined, "in time"]);
});

test("nodes of a graph wait for promises with keys in parallel, through a crash", async () => {
  const panel = graph("panel", {
    state: { votes: merge<Record<string, number>>({}) },
    ports: { vote: promise<number>() },
  })
    .node("ann", async (ctx) => ({ votes: { ann: await ctx.promise("vote", { key: "ann" }) } }))
    .node("bob", async (ctx) => ({ votes: { bob: await ctx.promise("vote", { key: "bob" }) } }))
    .edge(START, ["ann", "bob"]);
  await using engine = await createTestEngine({ definitions: [panel] });
  const run = await engine.start(panel, {});
  await run.resolve("vote", 2, { key: "bob" });
  await engine.crash();
  await run.resolve("vote", 1, { key: "ann" });
  expect(await run.result()).toEqual({ votes: { ann: 1, bob: 2 } });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a crash at any write leaves every key with its value", async () => {
  const { output } = await crashEverywhere(release, APPROVERS, {
    async drive(engine, id) {
      const run = engine.get(release, id);
      for (const key of APPROVERS) await run.resolve("approve", { ok: key !== "bob" }, { key });
    },
  });
  expect(output).toEqual(["ann", "eve"]);
});

test("a retry of a run that a rejected key failed accepts a value for that key again", async () => {
  await using engine = await createTestEngine({ definitions: [release] });
  const run = await engine.start(release, APPROVERS);
  await run.resolve("approve", { ok: true }, { key: "ann" });
  await run.reject("approve", new Error("no"), { key: "bob" });
  await rejection(run.result());
  await run.retry();
  await run.resolve("approve", { ok: true }, { key: "bob" });
  expect((await rejection(run.resolve("approve", { ok: false }, { key: "ann" }))).code).toBe(
    "PROMISE_ALREADY_RESOLVED",
  );
  await run.resolve("approve", { ok: true }, { key: "eve" });
  expect(await run.result()).toEqual(APPROVERS);
});

test("a client settles a promise with a key, and reads who did", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  await using engine = await createEngine({ store, definitions: [release] });
  await using client = await createClient({ store, definitions: [release] });
  await engine.start(release, ["ann"], { id: "release-1" });
  const run = client.get(release, "release-1");
  await run.resolve("approve", { ok: true }, { key: "ann", by: "Ann" });
  expect(await run.result()).toEqual(["ann"]);
  const settled = (await collect(run.journal())).find(({ type }) => type === "PromiseResolved");
  expect(settled?.data).toMatchObject({ by: "Ann" });
});

test("keys, callers and reasons that cannot be stored are refused before anything is written", async () => {
  const odd = workflow(
    "odd",
    { ports: { go: promise(), "a[b]": promise(), a: promise() } },
    async (ctx, key: string): Promise<string | void> => {
      await ctx.promise("a", { key: "b" }).catch((error: unknown) => error);
      return ctx.promise("go", { key });
    },
  );
  await using engine = await createTestEngine({ definitions: [odd] });
  const run = await engine.start(odd, "k".repeat(150));
  const refusal = async (options: object): Promise<string> =>
    (await rejection(run.resolve("go", undefined, options))).message;
  expect(await refusal({ key: "" })).toContain("resolve go: key: expected a string of 1 to 150 characters");
  expect(await refusal({ key: "k".repeat(151) })).toContain("not one of 151");
  expect(await refusal({ key: 7 })).toContain("not number");
  expect(await refusal({ key: "a\u0001" })).toContain("control characters");
  expect(await refusal({ by: "" })).toContain("resolve go: by:");
  expect(await refusal({ reason: "r".repeat(1_001) })).toContain("a reason of at most 1000 characters, got 1001");
  expect(await refusal({ keys: "a" })).toContain("keys");
  expect((await rejection(run.resolve("a", undefined, { key: "b" }))).message).toContain("would be ambiguous");
  await run.resolve("go", undefined, { key: "k".repeat(150), reason: "r".repeat(1_000) });
  await run.result();
  const failing = await engine.start(odd, "");
  expect((await rejection(failing.result())).message).toContain("ctx.promise(go): key: expected a string");
});

test("a promise is assigned once, also when the run fails with unread messages and is retried", async () => {
  let broken = true;
  const order = workflow(
    "order",
    { ports: { approve: promise<number>(), hi: signal(), end: promise() } },
    async (ctx) => {
      const first = await ctx.promise("approve", { key: "a" });
      await ctx.run("charge", () => {
        if (broken) throw new TypeError("no");
        return 1;
      });
      await ctx.promise("end");
      return [first, await ctx.promise("approve", { key: "a" })];
    },
  );
  let send: (() => Promise<void>) | undefined;
  const source = storeAround(async (writes, apply) => {
    if (writes.some((write) => write.write === "turn" && write.then === "failed")) {
      const now = send;
      send = undefined;
      await now?.();
    }
    return apply();
  });
  await using engine = await createEngine({ store: source, definitions: [order], logger: false });
  send = async () => {
    const arrival = { type: "SignalReceived", target: "hi", data: '{"name":"hi"}' } as const;
    await source.store.write([{ write: "message", to: "order-1", arrival, once: false }]);
  };
  const run = await engine.start(order, undefined, { id: "order-1" });
  await run.resolve("approve", 1, { key: "a" });
  await rejection(run.result());
  broken = false;
  await run.retry();
  expect((await rejection(run.resolve("approve", 2, { key: "a" }))).code).toBe("PROMISE_ALREADY_RESOLVED");
  await run.resolve("approve", 1, { key: "a" });
  await run.resolve("end");
  expect(await run.result()).toEqual([1, 1]);
});

test("the refusal of another value shows no secret of the first caller", async () => {
  const redact = { values: () => ["hunter2-secret"] };
  await using engine = await createTestEngine({ definitions: [release], redact });
  const run = await engine.start(release, APPROVERS);
  await run.resolve("approve", { ok: true }, { key: "ann", by: "hunter2-secret", reason: "token hunter2-secret" });
  const refused = await rejection(run.resolve("approve", { ok: false }, { key: "ann" }));
  expect(JSON.stringify([refused.message, refused])).not.toContain("hunter2");
  expect(refused.message).toContain("(token [redacted])");
});
