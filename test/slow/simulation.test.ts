// A small part of what `npm run sim` does, in every test run: seeds that once failed, some that never did, and proof that the
// simulation itself can be trusted: the same seed is the same world, and what must fail does.

import { expect, test } from "vitest";
import { readSavedSeeds } from "../simulation/saved-seeds.ts";
import { reproduction, shrink } from "../simulation/shrink.ts";
import { simulate, type SimOptions } from "../simulation/simulate.ts";

/** Whatever a machine can do in this time, and at least some. */
const BUDGET_MS = 10_000;
const AT_LEAST = 5;
const TIMEOUT_MS = 600_000;

async function problemsOf(options: SimOptions): Promise<readonly string[]> {
  const { problems } = await simulate(options);
  return problems.length === 0 ? [] : [reproduction(options), ...problems];
}

test("seeds that once failed do not", { timeout: TIMEOUT_MS }, async () => {
  const saved = readSavedSeeds();
  expect(saved.length).toBeGreaterThan(0);
  for (const { options } of saved) expect(await problemsOf(options)).toEqual([]);
});

for (const store of ["sqlite", "remote"] as const) {
  test(`whatever goes wrong, nothing is lost or done twice on ${store}`, { timeout: TIMEOUT_MS }, async () => {
    const started = performance.now();
    for (let seed = 1; seed <= AT_LEAST || performance.now() - started < BUDGET_MS; seed += 1)
      expect(await problemsOf({ seed, store, ...(store === "remote" && { mode: "rc" }) })).toEqual([]);
  });

  test(
    `when history goes back on ${store}, no run is mixed and every loss is said`,
    { timeout: TIMEOUT_MS },
    async () => {
      const started = performance.now();
      for (let seed = 1; seed <= AT_LEAST || performance.now() - started < BUDGET_MS; seed += 1) {
        const scenario = seed % 2 === 0 ? ["orders"] : undefined;
        const options: SimOptions = { seed, store, scenario, always: ["rollback"] };
        expect(await problemsOf(options)).toEqual([]);
      }
    },
  );

  test(`the same seed is the same world on ${store}, event for event`, { timeout: TIMEOUT_MS }, async () => {
    for (let seed = 1; seed <= 3; seed += 1) {
      const options: SimOptions = { seed, store, always: ["rollback"] };
      const [first, again] = [await simulate(options), await simulate(options)];
      expect([again.digest, again.steps, again.virtualMs]).toEqual([first.digest, first.steps, first.virtualMs]);
    }
  });
}

test("the canary dies: faults reach the code between a call and its commit", { timeout: TIMEOUT_MS }, async () => {
  const deaths: string[] = [];
  for (let seed = 1; deaths.length === 0 && seed <= 100; seed += 1)
    deaths.push(...(await simulate({ seed, store: "sqlite", scenario: ["canary"] })).problems);
  expect(deaths[0]).toMatch(/^canary/);
});

test("a failing seed is made smaller, and still fails", { timeout: TIMEOUT_MS }, async () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const options: SimOptions = { seed, store: "sqlite", scenario: ["canary", "outbox"] };
    const report = await simulate(options);
    if (report.problems.length === 0) continue;
    const small = await shrink(options, report);
    expect(small.report.problems).not.toEqual([]);
    expect(small.report.fired.length).toBeLessThan(report.fired.length);
    expect(await problemsOf(small.options)).not.toEqual([]);
    return;
  }
  expect.unreachable("no seed failed");
});
