import { expect, test } from "vitest";
import { RunCache, type CachedRun, type Continuation } from "./run-cache.ts";

interface SampleRun extends CachedRun {
  readonly memory: number;
  continues: Continuation;
}

function runOf(run: number, memory = 1, parent?: number): SampleRun {
  return { record: { run, parent }, memory, continues: "unknown" };
}

const MAX_HELD = 500;

function cacheOf(limit: number): RunCache<SampleRun> {
  return new RunCache<SampleRun>({
    limit,
    maxHeld: MAX_HELD,
    memoryOf: ({ memory }) => memory,
    continuationOf: ({ continues }) => continues,
  });
}

function holdAndRelease(cache: RunCache<SampleRun>, run: SampleRun): readonly SampleRun[] {
  return [...cache.hold(run), ...cache.release(run)];
}

test("runs that are not held stay while their memory and that of the held runs is below the limit", () => {
  const cache = cacheOf(100);
  const runs = Array.from({ length: 100 }, (_, index) => runOf(index + 1));
  expect(runs.flatMap((run) => holdAndRelease(cache, run))).toEqual([]);
  const large = runOf(101, 30);
  const evicted = cache.hold(large);
  expect(evicted.length).toBe(30);
  for (const { record } of evicted) expect(cache.get(record.run)).toBeUndefined();
  expect(cache.idle().length).toBe(70);
  expect(cache.heldCount).toBe(1);
});

test.each([
  [1.25, 0.55],
  [2, 0.18],
])("a circular walk through %f times as many runs as fit finds some of them: %f of them or more", (times, share) => {
  const cache = cacheOf(500);
  const runs = Array.from({ length: 500 * times }, (_, index) => runOf(index + 1));
  for (const run of runs) holdAndRelease(cache, run);
  let hits = 0;
  for (let round = 0; round < 10; round += 1)
    for (const run of runs) {
      if (cache.get(run.record.run) === run) hits += 1;
      holdAndRelease(cache, run);
    }
  expect(hits / (10 * runs.length)).toBeGreaterThan(share);
});

test("a run that continues when work on this worker ends is not evicted", () => {
  const cache = cacheOf(50);
  const busy = Array.from({ length: 40 }, (_, index) => ({ ...runOf(index + 1), continues: "at_once" as const }));
  for (const run of busy) holdAndRelease(cache, run);
  for (let run = 100; run < 1_000; run += 1) holdAndRelease(cache, runOf(run));
  expect(busy.every(({ record }) => cache.get(record.run) !== undefined)).toBe(true);
});

test("a parent is not evicted while its child is held", () => {
  const cache = cacheOf(50);
  holdAndRelease(cache, runOf(1));
  const child = runOf(2, 1, 1);
  cache.hold(child);
  for (let run = 100; run < 1_000; run += 1) holdAndRelease(cache, runOf(run));
  expect(cache.get(1)).toBeDefined();
  cache.release(child);
  for (let run = 1_000; run < 2_000; run += 1) holdAndRelease(cache, runOf(run));
  expect(cache.get(1)).toBeUndefined();
});

test("runs that wait for tasks or children stay longer than others", () => {
  const cache = cacheOf(100);
  const soon = Array.from({ length: 50 }, (_, index) => ({ ...runOf(index + 1), continues: "soon" as const }));
  for (const run of soon) holdAndRelease(cache, run);
  for (let run = 100; run < 300; run += 1) holdAndRelease(cache, runOf(run));
  expect(soon.filter(({ record }) => cache.get(record.run) !== undefined).length).toBeGreaterThan(40);
});

test("16 runs stay, however large they are", () => {
  const cache = cacheOf(100);
  for (let run = 1; run <= 40; run += 1) holdAndRelease(cache, runOf(run, 1_000));
  expect(cache.idle().length).toBe(16);
});

test("a worker holds as many runs as its limit says, whatever their memory", () => {
  for (const memory of [1, 1_000_000]) {
    const cache = cacheOf(100);
    expect(cache.room).toBe(MAX_HELD);
    for (let run = 1; run <= MAX_HELD; run += 1) cache.hold(runOf(run, memory));
    expect(cache.room).toBe(0);
  }
});

test("a newer value of a run replaces the older one, and only the newer one can be removed", () => {
  const cache = cacheOf(100);
  const [older, newer] = [runOf(1), runOf(1)];
  holdAndRelease(cache, older);
  cache.hold(newer);
  cache.delete(older);
  expect(cache.get(1)).toBe(newer);
  cache.delete(newer);
  expect(cache.get(1)).toBeUndefined();
  expect([cache.heldCount, cache.idle()]).toEqual([0, []]);
});
