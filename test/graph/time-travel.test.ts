// Time travel: the state after any step, forks that share earlier steps, and diffs.

import { expect, test } from "vitest";
import { append, createEngine, END, graph, last, max, merge, promise, START, stream } from "reprise";
import { createTestEngine } from "reprise/testing";
import { seedOf } from "../../src/base/index.ts";
import { collect } from "../engine/world.ts";
import { openStores } from "./graph-stores.ts";

/** Five rounds; each draws chance, calls the outside and says what it has seen. */
const rounds = graph("rounds", {
  state: { n: last(0), log: append<string>(), facts: merge<Record<string, number>>({}), best: max(0) },
  ports: { go: promise<number>(), notes: stream<string>() },
})
  .node("count", async (ctx, state) => {
    const n = await ctx.run("add", { n: state.n }, (_op, { n }) => n + 1);
    if (n === 2 || n === 4) ctx.label("even");
    ctx.emit("notes", `round ${n}`);
    return { n, log: [`${n} ${ctx.random()} ${ctx.uuid()}`], facts: { [`k${n}`]: n }, best: n * 2 };
  })
  .edge(START, "count")
  .edge("count", END, (state) => state.n >= 5)
  .edge("count", "count");

test("stateAt returns the state after any step, by number, or by label the newest one", async () => {
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, { log: ["first"] }, { id: "r" });
  const end = await run.result();
  expect(await run.stateAt(0)).toEqual({ n: 0, log: ["first"], facts: {}, best: 0 });
  expect(await run.stateAt(5)).toEqual(end);
  for (let step = 1; step <= 5; step += 1) {
    const state = await run.stateAt(step);
    expect(state.n).toBe(step);
    expect(state.log).toEqual(end.log.slice(0, step + 1));
    expect(state.best).toBe(step * 2);
  }
  expect((await run.stateAt({ label: "even" })).n).toBe(4);
});

test("checkpoints come in order with the nine fields, and a single one has its recorded calls", async () => {
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, {}, { id: "r" });
  await run.result();
  const all = await collect(run.checkpoints());
  expect(all.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(all.map(({ label }) => label)).toEqual([undefined, undefined, "even", undefined, "even", undefined]);
  expect((await collect(run.checkpoints({ after: 3 }))).map(({ step, state }) => [step, state.n])).toEqual([
    [4, 4],
    [5, 5],
  ]);
  const two = await run.checkpoint(2);
  expect(two).toMatchObject({
    runId: "r",
    step: 2,
    label: "even",
    rngSeed: seedOf("r"),
    state: { n: 2 },
    idempotencyKey: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    timestamp: expect.any(Date),
    frontier: [{ step: 3, node: "count", attempt: 0, parentNode: "count", edgeIndex: 1, orderKey: expect.any(BigInt) }],
    recordedIO: [{ node: "count", attempt: 0, call: 0, name: "add", request: { n: 1 }, response: 2 }],
  });
  expect(two.frontier[0]?.state).toEqual(two.state);
  expect(two.recordedIO?.[0]?.hash).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(all[2]?.recordedIO).toBeUndefined();
  const withCalls = await collect(run.checkpoints({ recordedIO: true }));
  expect(withCalls.map(({ recordedIO }) => recordedIO?.map(({ response }) => response))).toEqual([
    [],
    [1],
    [2],
    [3],
    [4],
    [5],
  ]);
});

test("a fork continues from a step with the random seed of its origin, and without a patch ends like it", async () => {
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, {}, { id: "r" });
  const end = await run.result();
  const fork = await run.fork({ step: 2, id: "f" });
  expect(await fork.result()).toEqual(end);
  const [own] = await collect(fork.checkpoints({ after: 1 }));
  expect(own).toMatchObject({ runId: "f", step: 2, rngSeed: seedOf("r"), label: "even" });
  // Keys are those of its own id (rules.G14).
  const keys = new Set((await collect(run.checkpoints())).map(({ idempotencyKey }) => idempotencyKey));
  for (const { idempotencyKey } of await collect(fork.checkpoints({ after: 1 })))
    expect(keys.has(idempotencyKey)).toBe(false);
  // What it says to the outside is its own as well.
  expect((await collect(fork.stream("notes"))).map(({ value }) => value)).toEqual(["round 3", "round 4", "round 5"]);
});

test("a fork shares the steps before it: its journal holds none of them, and reading them returns the origin's", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [rounds] });
  const run = await engine.start(rounds, {}, { id: "r" });
  await run.result();
  const fork = await run.fork({ label: "even", patch: { log: ["changed"] }, id: "f" });
  expect((await fork.result()).log[0]).toBe("changed");
  const journal = await collect(fork.journal());
  const { run: number } = (await stores.store.findRun("r"))!;
  const [row] = await stores.store.readCheckpoints(number, 3, 1);
  expect(journal.slice(0, 2).map(({ type }) => type)).toEqual(["RunStarted", "StepCommitted"]);
  expect(journal[0]?.data).toMatchObject({
    forked: { run: "r", step: 4, seq: row?.seq, chain: row?.chain },
    seed: seedOf("r"),
  });
  expect(journal[1]?.data).toMatchObject({ step: 4, label: "even", delta: { set: { log: ["changed"], n: 4 } } });
  const all = await collect(fork.checkpoints());
  expect(all.map(({ runId, step }) => [runId, step])).toEqual([
    ["r", 0],
    ["r", 1],
    ["r", 2],
    ["r", 3],
    ["f", 4],
    ["f", 5],
  ]);
  expect((await fork.stateAt(3)).n).toBe(3);
  expect((await fork.checkpoint(4)).recordedIO?.map(({ response }) => response)).toEqual([4]);
  expect(await stores.store.check()).toEqual([]);
});

test("a fork of a fork reads each step from the run that committed it", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [rounds] });
  const run = await engine.start(rounds, {}, { id: "r" });
  await run.result();
  const fork = await run.fork({ step: 3, id: "f", patch: { best: 100 } });
  await fork.result();
  const later = await fork.fork({ step: 4, id: "g", patch: { n: 0 } });
  const earlier = await later.fork({ step: 1, id: "h" });
  const endOfLater = await later.result();
  expect([endOfLater.n, endOfLater.best]).toEqual([5, 100]);
  expect((await collect(later.checkpoints())).map(({ runId }) => runId)).toEqual([
    ..."rrrf".split(""),
    ..."gggggg".split(""),
  ]);
  expect(await earlier.result()).toEqual(await run.result());
  expect((await collect(earlier.checkpoints())).map(({ runId }) => runId)).toEqual(["r", ..."hhhhh".split("")]);
  expect((await earlier.checkpoint(1)).rngSeed).toBe(seedOf("r"));
  expect(await stores.store.check()).toEqual([]);
});
