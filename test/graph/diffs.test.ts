// Diff: the first step after which two runs differ, found without reading the steps they share.

import { expect, test } from "vitest";
import { append, createEngine, END, graph, last, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";
import { countingStore } from "./counting-store.ts";
import { openStores } from "./graph-stores.ts";

const counts = graph("counts", { state: { n: last(0), upTo: last(5), log: append<string>() } })
  .node("even", async (_ctx, state) => ({ n: state.n + 1, log: ["even"] }))
  .node("odd", async (_ctx, state) => ({ n: state.n + 1, log: ["odd"] }))
  .edge(START, "even")
  .edge("even", END, (state) => state.n >= state.upTo)
  .edge("even", "odd")
  .edge("odd", END, (state) => state.n >= state.upTo)
  .edge("odd", "even");

test("runs with equal states after every step do not differ, whatever their ids and times", async () => {
  await using engine = await createTestEngine({ definitions: [counts] });
  const a = await engine.start(counts, {}, { id: "a" });
  await a.result();
  await engine.clock.advance("1 hour");
  const b = await engine.start(counts, {}, { id: "b" });
  await b.result();
  expect(await a.diff(b)).toEqual({ firstDivergence: undefined, steps: [], more: false });
  expect(await a.diff(a)).toEqual({ firstDivergence: undefined, steps: [], more: false });
});

test("a diff names the first divergence, what differs after it, and steps that only one run has", async () => {
  await using engine = await createTestEngine({ definitions: [counts] });
  const a = await engine.start(counts, {}, { id: "a" });
  const b = await engine.start(counts, { upTo: 3 }, { id: "b" });
  await Promise.all([a.result(), b.result()]);
  const diff = await a.diff(b);
  expect(diff.firstDivergence).toBe(0);
  expect(diff.steps.map(({ step, in: where }) => [step, where])).toEqual([
    [0, "both"],
    [1, "both"],
    [2, "both"],
    [3, "both"],
    [4, "here"],
    [5, "here"],
  ]);
  expect(diff.steps[1]).toEqual({ step: 1, in: "both", channels: { upTo: { here: 5, there: 3 } } });
  expect(diff.steps[3]?.next).toEqual({ here: ["odd"], there: [] });
  expect(diff.steps[5]).toEqual({
    step: 5,
    in: "here",
    channels: { n: { here: 5 }, log: { here: ["even", "odd", "even", "odd", "even"] }, upTo: { here: 5 } },
    next: { here: [] },
  });
  // The other way round.
  const back = await b.diff(a);
  expect(back.steps.map(({ in: where }) => where)).toEqual(["both", "both", "both", "both", "there", "there"]);
  expect(back.steps[3]?.next).toEqual({ here: [], there: ["odd"] });
  const short = await a.diff(b, { limit: 2 });
  expect([short.steps.length, short.more, short.firstDivergence]).toEqual([2, true, 0]);
});

test("a run and its fork, two forks of one run, and a fork of a fork differ from where they part", async () => {
  await using engine = await createTestEngine({ definitions: [counts] });
  const run = await engine.start(counts, { upTo: 8 }, { id: "r" });
  await run.result();
  const early = await run.fork({ step: 3, id: "early", patch: { n: 4 } });
  const late = await run.fork({ step: 6, id: "late", patch: { log: [] } });
  const same = await run.fork({ step: 4, id: "same" });
  await Promise.all([early.result(), late.result(), same.result()]);
  const second = await early.fork({ step: 5, id: "second", patch: { upTo: 6 } });
  await second.result();
  expect((await run.diff(early)).firstDivergence).toBe(3);
  expect((await early.diff(run)).firstDivergence).toBe(3);
  expect((await run.diff(late)).firstDivergence).toBe(6);
  expect((await early.diff(late)).firstDivergence).toBe(3);
  expect((await run.diff(same)).firstDivergence).toBeUndefined();
  expect((await early.diff(second)).firstDivergence).toBe(5);
  expect((await run.diff(second)).firstDivergence).toBe(3);
  const diff = await run.diff(late);
  expect(diff.steps[0]?.channels["log"]).toMatchObject({ there: [] });
});

test("a diff does not read the steps that two runs share", async () => {
  using stores = openStores();
  const counting = countingStore(stores.source);
  await using engine = await createEngine({ store: counting.source, definitions: [counts] });
  const run = await engine.start(counts, { upTo: 300 }, { id: "r" });
  await run.result();
  const fork = await run.fork({ step: 298, id: "f", patch: { log: ["other"] } });
  const other = await run.fork({ step: 298, id: "g", patch: { log: ["others"] } });
  await Promise.all([fork.result(), other.result()]);
  counting.reset();
  expect((await fork.diff(other)).steps.map(({ step }) => step)).toEqual([298, 299, 300]);
  // Three steps each, and where both began.
  expect(counting.steps).toEqual([298, 298, 299, 299, 300, 300]);
  counting.reset();
  expect((await run.diff(fork)).firstDivergence).toBe(298);
  expect(counting.steps.filter((step) => step < 298).length).toBeLessThan(counting.steps.length);
  expect(counting.steps.filter((step) => step >= 298).length).toBe(6);
});

test("a diff rejects a value that is not a run, and a wrong limit", async () => {
  await using engine = await createTestEngine({ definitions: [counts] });
  const run = await engine.start(counts, {}, { id: "r" });
  await run.result();
  expect(await rejection(run.diff("r" as never))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(run.diff(undefined as never))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(run.diff(run, { limit: 0 }))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(run.diff(run, { limmit: 1 } as never))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(run.diff(engine.get(counts, "missing")))).toMatchObject({ code: "RUN_NOT_FOUND" });
});

test("runs of two stores can be compared", async () => {
  await using engine = await createTestEngine({ definitions: [counts] });
  await using other = await createTestEngine({ definitions: [counts] });
  const a = await engine.start(counts, {}, { id: "r" });
  const b = await other.start(counts, { log: ["x"] }, { id: "r" });
  await Promise.all([a.result(), b.result()]);
  expect((await a.diff(b)).steps[0]).toEqual({
    step: 0,
    in: "both",
    channels: { log: { here: [], there: ["x"] } },
  });
});
