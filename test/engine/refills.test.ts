// Refills: a batch that frees slots of a queue fills them again, and a task is claimed with the turn of its run.

import { expect, test } from "vitest";
import { queue, task, workflow, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import { simulatedSource } from "../stores/remote-fixture.ts";
import { aroundWrites } from "./world.ts";

interface Claimed {
  readonly items: readonly { readonly turn?: unknown }[];
}
interface Turn {
  readonly write: "turn";
  readonly finished: readonly { readonly slot?: unknown }[];
}

/** What the batches of a store wrote. */
function watched(source: StoreSource) {
  const count = { ended: 0, turns: 0, items: 0, freeing: 0, refilled: 0 };
  const store = aroundWrites(source, async (writes, apply) => {
    const outcomes = await apply();
    for (const [index, { write }] of writes.entries()) {
      if (write === "end-item") count.ended += 1;
      if (write === "claim-turns") count.turns += (outcomes[index] as readonly unknown[]).length;
      if (write === "claim-items") count.items += (outcomes[index] as Claimed).items.length;
    }
    const isFreeing = writes.some(
      (write) => write.write === "turn" && (write as unknown as Turn).finished.some(({ slot }) => slot !== undefined),
    );
    count.freeing += Number(isFreeing);
    count.refilled += Number(isFreeing && writes.at(-1)?.write === "claim-items");
    return outcomes;
  });
  return { store, count };
}

const narrow = queue("narrow", { concurrency: 4 });
const job = task("job", { queue: narrow }, (_ctx, n: number) => n);
const asks = workflow("asks", async (ctx, n: number) => ctx.task(job, n));

test.each([
  ["SQLite", () => sqlite(":memory:")],
  ["a store behind a network", simulatedSource],
])("a batch that frees slots of a queue fills them again, on %s", async (_, source) => {
  const { store, count } = watched(source());
  await using engine = await createTestEngine({ store, definitions: [asks, job] });
  const runs = await Promise.all(Array.from({ length: 40 }, (_each, n) => engine.start(asks, n)));
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 40 }, (_each, n) => n));
  // No run is claimed apart from its task, and no result goes through the inbox.
  expect(count).toMatchObject({ ended: 0, turns: 0, items: 40 });
  expect(count.refilled).toBe(count.freeing);
});

test("the result of a task that is claimed with the turn of its run waits until the run is replayed", async () => {
  const { store, count } = watched(sqlite(":memory:"));
  await using engine = await createTestEngine({ store, definitions: [asks, job] });
  await engine.getQueue(narrow).pause();
  const runs = await Promise.all(Array.from({ length: 10 }, (_each, n) => engine.start(asks, n)));
  await engine.clock.advance(0);
  await engine.crash();
  count.turns = 0;
  await engine.getQueue("narrow").resume();
  await engine.clock.advance(0);
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 10 }, (_each, n) => n));
  expect(count).toMatchObject({ ended: 0, turns: 0, items: 10 });
});

test("a run whose task is claimed with its turn, and retried, gives the turn back meanwhile", async () => {
  const { store, count } = watched(sqlite(":memory:"));
  let calls = 0;
  const flaky = task("flaky", { queue: narrow, retry: { maxAttempts: 2, baseDelay: "1 minute" } }, () => {
    if (++calls === 1) throw new Error("not yet");
    return "done";
  });
  const once = workflow("once", async (ctx) => ctx.task(flaky));
  await using engine = await createTestEngine({ store, definitions: [once, flaky] });
  const run = await engine.start(once);
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
  await engine.clock.advance("3 minutes");
  expect(await run.result()).toBe("done");
  expect(count).toMatchObject({ ended: 0, items: 2 });
});
