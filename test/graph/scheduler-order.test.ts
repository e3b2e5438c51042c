// Order: dispatch, merge and retry do not depend on which node ends first.

import { expect, test } from "vitest";
import { append, channel, END, FatalError, graph, merge, promise, START, type NodeContext } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection, storeAround } from "../engine/world.ts";
import { randomSource } from "../replay/random-source.ts";

const BRANCHES = ["a", "b", "c", "d", "e"] as const;

function merging(fold: "written" | "order-key", delayOf: () => number, seen: string[]) {
  const ports = { never: promise() };
  const branch = (name: string) => async (ctx: NodeContext<typeof ports>) => {
    await ctx.promise("never", { timeout: delayOf() });
    return { log: [name], all: { [name]: 1, newest: name }, joined: name };
  };
  const state = {
    log: append<string>(),
    all: merge<Record<string, unknown>>({}),
    joined: channel("", (text, more: string) => `${text}>${more}`),
  };
  return graph("merges", { fold, state, ports })
    .node("a", branch("a"))
    .node("b", branch("b"))
    .node("c", branch("c"))
    .node("d", branch("d"))
    .node("e", branch("e"))
    .node("after", async (_ctx, { log }) => {
      seen.push(log.toSorted().join(""));
      return { log: ["after"] };
    })
    .edge(START, [...BRANCHES])
    .join([...BRANCHES], "after")
    .edge("after", END);
}

test.each(["written", "order-key"] as const)(
  "merge order ≠ completion order: 5 branches with random delays of 0–100 ms, 100 runs: one merge log, one state, one set of checkpoints (%s)",
  async (fold) => {
    const chance = randomSource(fold.length);
    const endings = new Set<string>();
    const results = new Set<string>();
    const logs = new Set<string>();
    const seen: string[] = [];
    // The id is part of every key: each of ten runs at once has its like in every round.
    const ids = Array.from({ length: 10 }, (_, index) => `run-${index}`);
    for (let round = 0; round < 10; round += 1) {
      const source = storeAround((_writes, apply) => apply());
      const g = merging(fold, () => 10 * (1 + chance.below(10)), seen);
      await using engine = await createTestEngine({ definitions: [g], store: source });
      const runs = await Promise.all(ids.map((id) => engine.start(g, {}, { id })));
      await engine.clock.advance(101);
      for (const run of runs) {
        const { log } = await run.result();
        const { run: number } = (await source.store.findRun(run.id))!;
        const entries = await source.store.readJournal(number, 0);
        const steps = entries.flatMap(({ type, data }) => (type === "StepCommitted" ? [data] : []));
        endings.add(entries.flatMap(({ type, command }) => (type === "NodeCompleted" ? [command] : [])).join(" "));
        logs.add(log.join(""));
        results.add(`${run.id} ${steps.join("\n")} ${entries.at(-1)!.data}`);
      }
    }
    // They did end in many orders.
    expect(endings.size).toBeGreaterThan(20);
    expect([results.size, logs.size]).toEqual([10, 1]);
    if (fold === "written") expect([...logs]).toEqual(["abcdeafter"]);
    else expect([...logs]).not.toEqual(["abcdeafter"]);
    expect(new Set(seen)).toEqual(new Set(["abcde"]));
  },
);

async function delaysOf(id: string): Promise<number[]> {
  const g = graph("flaky", { state: {} })
    .node("always", { retry: { maxAttempts: 8, baseDelay: "1 s", maxDelay: "30 s" } }, async () => {
      throw new Error("again");
    })
    .edge(START, "always");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {}, { id });
  await engine.clock.advance("10 minutes");
  await rejection(run.result());
  const delays: number[] = [];
  for await (const { type, data } of run.journal())
    if (type === "NodeRetried") delays.push((data as { delay: number }).delay);
  return delays;
}

test("backoff: a node waits base·2^attempt and less than a base more, never above the maximum; the same run id, the same delays", async () => {
  const delays = await delaysOf("run-1");
  expect(delays).toHaveLength(7);
  for (const [attempt, delay] of delays.slice(0, 5).entries()) {
    expect(delay).toBeGreaterThanOrEqual(1_000 * 2 ** attempt);
    expect(delay).toBeLessThan(1_000 * 2 ** attempt + 1_000);
  }
  expect(delays.slice(5)).toEqual([30_000, 30_000]);
  expect(await delaysOf("run-1")).toEqual(delays);
  expect(await delaysOf("run-2")).not.toEqual(delays);
});

test("a policy without `retryable` retries every error except FatalError", async () => {
  const tries: string[] = [];
  const g = graph("flaky", { state: {} })
    .node("each", { retry: { maxAttempts: 3, baseDelay: 1, maxDelay: 1 } }, async (ctx, _state, item: string) => {
      tries.push(`${item} ${ctx.attempt}`);
      if (item === "fatal") throw new FatalError("never");
      if (ctx.attempt < 3) throw new Error("again");
    })
    .spread(START, "each", () => ["fatal"]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "never" } });
  expect(tries).toEqual(["fatal 1"]);
});

test("items are dispatched in ascending order key if the frontier has room for all, and never more concurrently than allowed", async () => {
  const began: number[] = [];
  const g = graph("wide", { state: { n: append<number>() }, maxConcurrentNodes: 1, queueDepth: 1_000 })
    .node("each", async (_ctx, _state, item: number) => {
      began.push(item);
    })
    .spread(START, "each", () => Array.from({ length: 200 }, (_, index) => index));
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await run.result();
  let keys: readonly { orderKey: string; input: number }[] = [];
  for await (const { type, data } of run.journal())
    if (type === "StepCommitted" && (data as { step: number }).step === 0)
      keys = (data as { frontier: { orderKey: string; input: number }[] }).frontier;
  expect(began).toEqual(keys.toSorted((a, b) => (a.orderKey < b.orderKey ? -1 : 1)).map(({ input }) => input));
  expect(began).not.toEqual(began.toSorted((a, b) => a - b));
});
