// Migrating: a live run of a flow continues with another version of the flow.

import { expect, test } from "vitest";
import { flow, queue, typed, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createGate, rejection } from "../engine/world.ts";

const slow = queue("slow", { concurrency: 1 });

test("a flow continues with the nodes of the other version; a node that is running is executed again", async () => {
  const gate = createGate();
  const ran: string[] = [];
  const priceOf = (version: number) =>
    flow("price", { input: typed<number>(), version })
      .action("fetch", ["input"], (_ctx, { input }) => (ran.push(`fetch ${version}`), input * 2))
      .inline("net", ["fetch"], ({ fetch }) => fetch + 1)
      .action("tax", ["net"], { queue: slow }, async (_ctx, { net }) => {
        ran.push(`tax ${version}`);
        if (version === 1) await gate.wait();
        return net * 10;
      })
      .spread(
        "parts",
        ["tax"],
        ({ tax }) => [tax, tax + version],
        (_ctx, part) => part + version,
      )
      .output(["parts", "net"], ({ parts, net }) => ({ parts, net, version }));
  const [one, two] = [priceOf(1), priceOf(2)];
  await using engine = await createTestEngine({ definitions: [one, two] });
  const run = await engine.start(one, 5, { id: "p" });
  await gate.reached;
  await run.migrate({ version: 2 });
  gate.open();
  expect(await run.result()).toEqual({ parts: [112, 114], net: 11, version: 2 });
  expect(ran).toEqual(["fetch 1", "tax 1", "tax 2"]);
  const types = (await collect(run.journal())).map(({ type, command = "" }) => `${type} ${command}`.trim());
  expect(types.slice(0, 4)).toEqual(["RunStarted", "NodeCompleted fetch", "RunMigrated", "NodeCompleted tax"]);
  expect(await run.info()).toMatchObject({ version: 2 });
  expect(await run.verify()).toMatchObject({ status: "same" });
  const lost = (await collect(run.attempts())).filter(({ outcome }) => outcome === "returned");
  expect(lost.map(({ step, execution }) => [step, execution])).toEqual([["tax", 1]]);
});

/** `a` and `b` follow from the input; `b` waits for a child that never ends. */
const base = (version: number) =>
  flow("shape", { input: typed<number>(), version })
    .action("a", ["input"], (_ctx, { input }) => input)
    .inline("twice", ["a"], ({ a }) => a * 2);
const waits = workflow("waits", async (ctx) => ctx.sleep("1 day").then(() => 1));

test.each([
  [
    "that has no longer a node the run has recorded",
    () =>
      flow("shape", { input: typed<number>(), version: 2 })
        .action("z", ["input"], (_ctx, { input }) => input)
        .call("b", ["z"], waits, () => undefined)
        .output(["b"], ({ b }) => b),
    { where: "a", actual: "a" },
  ],
  [
    "that derives another value",
    () =>
      flow("shape", { input: typed<number>(), version: 2 })
        .action("a", ["input"], (_ctx, { input }) => input)
        .inline("twice", ["a"], ({ a }) => a * 3)
        .call("b", ["twice"], waits, () => undefined)
        .output(["b"], ({ b }) => b),
    { where: "twice", expected: "9", actual: "6" },
  ],
  [
    "whose new node needs a value that the run has passed on already",
    () =>
      base(2)
        .call("b", ["twice"], waits, () => undefined)
        .action("c", ["a", "b"], (_ctx, { a }) => a)
        .output(["b", "c"], ({ b }) => b),
    { where: "c", expected: "a → c", actual: undefined },
  ],
  [
    "whose node waits for more values",
    () =>
      base(2)
        .call("b", ["twice", "a"], waits, () => undefined)
        .output(["b"], ({ b }) => b),
    { where: "b", expected: 2, actual: 1 },
  ],
] as const)("a flow %s is refused, and the run stays as it is", async (_what, changed, details) => {
  const one = base(1)
    .call("b", ["twice"], waits, () => undefined)
    .output(["b"], ({ b }) => b);
  const two = changed();
  await using engine = await createTestEngine({ definitions: [one, two, waits] as never });
  const run = await engine.start(one as never, 3 as never, { id: "s" });
  await engine.clock.advance(10);
  const before = await run.info();
  const error = (await rejection(run.migrate({ version: 2 }))) as RepriseError;
  expect([error.code, error.details]).toMatchObject(["MIGRATION_REFUSED", { run: "s", from: 1, to: 2, ...details }]);
  expect(await run.info()).toMatchObject({ version: 1, digest: before.digest });
  await engine.clock.advance("1 day");
  expect(await run.result()).toBe(1);
});

test("nodes that nothing has reached may change: new ones run, removed ones do not", async () => {
  const ran: string[] = [];
  const one = base(1)
    .call("b", ["twice"], waits, () => undefined)
    .action("removed", ["b"], (_ctx, { b }) => (ran.push("removed"), b))
    .output(["removed"], ({ removed }) => removed);
  const two = base(2)
    .call("b", ["twice"], waits, () => undefined)
    .action("added", ["b"], (_ctx, { b }) => (ran.push("added"), b + 1))
    .inline("more", ["added"], ({ added }) => added + 1)
    .output(["more"], ({ more }) => more);
  await using engine = await createTestEngine({ definitions: [one, two, waits] });
  const run = await engine.start(one, 3);
  await engine.clock.advance(10);
  await run.migrate({ version: 2 });
  await engine.clock.advance("1 day");
  expect([await run.result(), ran]).toEqual([3, ["added"]]);
});

test("a flow whose node waits in a queue that the other version does not use is refused", async () => {
  const gate = createGate();
  const queued = (version: number, line: typeof slow) =>
    flow("queued", { input: typed<number>(), version })
      .action("a", ["input"], { queue: line }, async (_ctx, { input }) => (await gate.wait(), input))
      .output(["a"], ({ a }) => a);
  const one = queued(1, slow);
  const two = queued(2, queue("other", { concurrency: 1 }));
  await using engine = await createTestEngine({ definitions: [one, two] });
  const first = await engine.start(one, 1, { id: "first" });
  const second = await engine.start(one, 2, { id: "second" });
  await gate.reached;
  expect(await rejection(second.migrate({ version: 2 }))).toMatchObject({
    code: "MIGRATION_REFUSED",
    details: { where: "a", actual: "slow" },
  });
  gate.open();
  expect([await first.result(), await second.result()]).toEqual([1, 2]);
});

test("a flow is migrated before its first turn, while it is paused, and while a node waits for its next attempt", async () => {
  const attempts: string[] = [];
  const flaky = (version: number) =>
    flow("flaky", { input: typed<number>(), version })
      .action("a", ["input"], { retry: { maxAttempts: 3, baseDelay: 1_000, maxDelay: 1_000 } }, (ctx, { input }) => {
        attempts.push(`${input}: attempt ${ctx.attempt} of version ${version}`);
        if (ctx.attempt === 1) throw new Error("once");
        return version;
      })
      .output(["a"], ({ a }) => a);
  const [one, two] = [flaky(1), flaky(2)];
  await using engine = await createTestEngine({ definitions: [one, two] });
  const delayed = await engine.start(one, 1, { delay: "1 minute" });
  await delayed.migrate({ version: 2 });
  const paused = await engine.start(one, 2);
  await engine.clock.advance(10);
  await paused.pause();
  await paused.migrate({ version: 2 });
  const waiting = await engine.start(one, 3);
  await engine.clock.advance(10);
  await waiting.migrate({ version: 2 });
  expect((await paused.info()).status).toBe("paused");
  await engine.clock.advance("1 hour");
  expect(await waiting.result()).toBe(2);
  expect(await delayed.result()).toBe(2);
  await paused.resume();
  await engine.clock.advance("1 hour");
  expect(await paused.result()).toBe(2);
  expect(attempts.toSorted()).toEqual([
    "1: attempt 1 of version 2",
    "1: attempt 2 of version 2",
    "2: attempt 1 of version 1",
    "2: attempt 2 of version 2",
    "3: attempt 1 of version 1",
    "3: attempt 2 of version 2",
  ]);
  for (const run of [delayed, paused, waiting]) expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a flow that is migrated ends with the new version, wherever its processes crash", async () => {
  const [one, two] = [1, 2].map((version) =>
    base(version)
      .call("b", ["twice"], waits, () => undefined)
      .action("c", ["b", "a"], (_ctx, { a, b }) => a + b)
      .output(["c"], ({ c }) => `${c} in version ${version}`),
  );
  const { output, crashes } = await crashEverywhere(one!, 3, {
    definitions: [two!, waits],
    drive: async (engine, id) => engine.get(one!, id).migrate({ version: 2 }),
  });
  expect(output).toBe("4 in version 2");
  expect(crashes).toBeGreaterThanOrEqual(8);
});
