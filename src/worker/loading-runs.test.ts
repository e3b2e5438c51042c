import { expect, test } from "vitest";
import { LoadingRuns } from "./loading-runs.ts";

test("of two replays of one run only the last counts, whichever ends first", () => {
  const runs = new LoadingRuns();
  const [first, last] = [runs.begin(1), runs.begin(1)];
  expect(runs.end(1, last)).toBe(true);
  expect(runs.end(1, first)).toBe(false);

  const [early, late] = [runs.begin(1), runs.begin(1)];
  expect(runs.end(1, early)).toBe(false);
  expect(runs.has(1)).toBe(true);
  runs.onArrival(1);
  expect(late.arrived).toBe(true);
  expect(runs.end(1, late)).toBe(true);
  expect(runs.has(1)).toBe(false);
});

test("loading is over when the last replay of each run has ended", async () => {
  const runs = new LoadingRuns();
  const [first, last, other] = [runs.begin(1), runs.begin(1), runs.begin(2)];
  let isOver = false;
  const over = runs.allLoaded().then(() => (isOver = true));
  runs.end(2, other);
  runs.end(1, first);
  await Promise.resolve();
  expect(isOver).toBe(false);
  runs.end(1, last);
  await over;
});
