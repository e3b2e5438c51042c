// Interruptions: whatever happens to a flow during a spread, at any item, it ends correctly and can be replayed.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aesGcm, createEngine, flow, queue, task, typed } from "reprise";
import { sqlite } from "reprise/sqlite";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

const ITEMS = 8;

for (const what of ["cancel", "terminate", "pause", "crash"] as const)
  test(`a spread in which each item in turn is the moment of a ${what} ends, and replays the same`, async () => {
    for (let moment = 0; moment < ITEMS; moment += 1) {
      let begun = 0;
      const reached = createGate();
      const wide = flow("wide", { input: typed<number>() })
        .spread(
          "all",
          ["input"],
          { concurrency: 3 },
          ({ input }) => Array.from({ length: input }, (_, index) => index),
          async (_ctx, item) => {
            if (begun === moment) reached.open();
            begun += 1;
            await Promise.resolve();
            return item;
          },
        )
        .output(["all"], ({ all }) => all.length);
      await using engine = await createTestEngine({ definitions: [wide], worker: { concurrency: 2 } });
      const run = await engine.start(wide, ITEMS);
      await reached.opened;
      if (what === "crash") await engine.crash();
      // It may be over by now: then there is nothing to steer.
      else await run[what]().catch(() => undefined);
      if (what === "pause") await run.resume().catch(() => undefined);
      const ended = await run.result().catch((error: { code: string }) => error.code);
      if (what === "pause" || what === "crash") expect(ended).toBe(ITEMS);
      else expect([ITEMS, "CANCELLED"]).toContain(ended);
      expect(await run.verify()).toMatchObject({ status: "same" });
    }
  });

test("a flow fails in several places and is retried each time, over crashes and with encrypted payloads", async () => {
  let faults = ["item", "item", "sum"];
  const takes = (fault: string): void => {
    if (faults[0] !== fault) return;
    faults = faults.slice(1);
    throw new Error(fault);
  };
  let firsts = 0;
  const often = flow("often", { input: typed<void>() })
    .action("a", ["input"], () => (firsts += 1))
    .spread(
      "s",
      ["a"],
      () => [0, 1, 2, 3],
      (_ctx, item) => {
        if (item === 2) takes("item");
        return item;
      },
    )
    .inline("sum", ["s"], ({ s }) => {
      takes("sum");
      return s.length;
    })
    .action("z", ["sum"], (_ctx, { sum }) => sum)
    .output(["z"], ({ z }) => z);
  const codec = aesGcm({ keys: { k1: Buffer.alloc(32, 7) }, current: "k1" });
  await using engine = await createTestEngine({ definitions: [often], codec });
  const run = await engine.start(often, undefined);
  for (const message of ["item", "item", "sum"]) {
    expect(await rejection(run.result())).toMatchObject({ cause: { message } });
    await engine.crash();
    await run.retry();
  }
  await engine.crash();
  expect(await run.result()).toBe(4);
  expect(firsts).toBe(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a flow with keys has the same output, wherever it crashes", { timeout: 120_000 }, async () => {
  const perKey = queue("per-key", { perKey: { concurrency: 2 } });
  const send = task(
    "send",
    { queue: perKey, key: ({ to }: { to: string }) => to },
    (_ctx, { n }: { to: string; n: number }) => n,
  );
  const all = flow("all", { input: typed<number>() })
    .spread(
      "sent",
      ["input"],
      // An entry holds one item of this size, and a commit queues the items of 16 entries.
      ({ input }) => Array.from({ length: input }, (_, n) => ({ to: `k${n % 3}`, n, text: "x".repeat(33_000) })),
      send,
    )
    .call("called", ["sent"], send, ({ sent }) => ({ to: "k1", n: sent.length }))
    .action("acted", ["called"], { queue: perKey, key: ({ called }) => `k${called}` }, (_ctx, { called }) => called + 1)
    .spread("few", ["acted"], { concurrency: 2 }, ({ acted }) => ["a", "a", "b"].map((to) => ({ to, n: acted })), send)
    .output(["few"], ({ few }) => few);
  const { output, crashes } = await crashEverywhere(all, 17, { definitions: [send] });
  expect(output).toEqual([18, 18, 18]);
  expect(crashes).toBeGreaterThanOrEqual(20);
});

test("a deployment that gives the items of a live spread a key limits those that have not started, and loses none", async () => {
  const folder = mkdtempSync(join(tmpdir(), "reprise-keys-"));
  try {
    const options = {
      store: sqlite(join(folder, "store.db")),
      durability: "relaxed",
      worker: { concurrency: 64 },
    } as const;
    const gate = createGate();
    let atWork = 0;
    let most = 0;
    const work = async (n: number): Promise<number> => {
      await gate.wait();
      most = Math.max(most, (atWork += 1));
      await new Promise((resolve) => setImmediate(resolve));
      atWork -= 1;
      return n;
    };
    const make = (limits: object) =>
      flow("wide", { input: typed<number>() })
        .spread(
          "all",
          ["input"],
          limits,
          ({ input }) => Array.from({ length: input }, (_, n) => n),
          (_ctx, n) => work(n),
        )
        .output(["all"], ({ all }) => all.length);
    const before = make({});
    const after = make({ queue: queue("per-key", { perKey: { concurrency: 30 } }), key: () => "all" });
    {
      await using engine = await createEngine({ ...options, definitions: [before] });
      // More than are queued at once.
      const run = await engine.start(before, 1_100, { id: "w" });
      await gate.reached;
      await run.pause();
      gate.open();
    }
    most = 0;
    await using engine = await createEngine({ ...options, definitions: [after] });
    const run = engine.get(after, "w");
    await run.resume();
    expect(await run.result()).toBe(1_100);
    expect(most).toBeLessThanOrEqual(30);
    expect(await run.verify()).toMatchObject({ status: "same" });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("nodes of the run with the higher priority run first", async () => {
  const seen: string[] = [];
  const gate = createGate();
  const urgent = flow("urgent", { input: typed<string>() })
    .action("a", ["input"], async (_ctx, { input }) => {
      if (input === "first") await gate.wait();
      seen.push(input);
    })
    .output(["a"], () => 1);
  await using engine = await createTestEngine({ definitions: [urgent], worker: { concurrency: 1 } });
  const first = await engine.start(urgent, "first");
  await gate.reached;
  const low = await engine.start(urgent, "low", { priority: 1 });
  const high = await engine.start(urgent, "high", { priority: 9 });
  await engine.clock.advance(10);
  gate.open();
  await Promise.all([first, low, high].map((run) => run.result()));
  expect(seen).toEqual(["first", "high", "low"]);
});

test("a value beyond the limit of the engine fails the run with its node, also one derived in memory, and replays the same", async () => {
  const large = flow("large", { input: typed<number>() })
    .action("a", ["input"], (_ctx, { input }) => "x".repeat(input))
    .inline("twice", ["a"], ({ a }) => a + a)
    .action("c", ["twice"], (_ctx, { twice }) => twice.length)
    .output(["c"], ({ c }) => c);
  await using engine = await createTestEngine({ definitions: [large], limits: { payload: 1_000 } });
  expect(await (await engine.start(large, 100)).result()).toBe(200);
  for (const [length, node] of [
    [800, "twice"],
    [2_000, "a"],
  ] as const) {
    const run = await engine.start(large, length);
    expect(await rejection(run.result())).toMatchObject({
      cause: { message: expect.stringContaining(`The value of node ${node} cannot be stored`) },
    });
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
});
