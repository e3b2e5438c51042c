// Freed slots: a slot that is freed while a claim is in flight is not lost.

import { expect, test } from "vitest";
import { createEngine, queue, workflow, type StoreSource } from "reprise";
import { simulatedSource } from "../stores/remote-fixture.ts";
import { aroundWrites, createGate } from "./world.ts";

/** After `isOver` no poll finds anything: only what this process knows of itself wakes the worker. */
function pollsUntil(isOver: () => boolean, source: StoreSource): StoreSource {
  return {
    async "~open"(options) {
      return new Proxy(await source["~open"](options), {
        get(target, key) {
          if (key === "pollChanges") return () => !isOver() && target.pollChanges();
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
}

interface Admitted {
  readonly runs: readonly number[];
  readonly held: boolean;
}

test("a run starts in a slot that was freed before the answer of a claim that did not see it", async () => {
  const [begun, full, answer] = [createGate(), createGate(), createGate()];
  let isFull = false;
  const source = pollsUntil(() => isFull, simulatedSource());
  const store = aroundWrites(source, async (writes, apply) => {
    const outcomes = await apply();
    const admitted = outcomes[writes.findIndex(({ write }) => write === "admit")] as Admitted | undefined;
    if (admitted?.held !== true || admitted.runs.length > 0) return outcomes;
    isFull = true;
    full.open();
    await answer.opened;
    return outcomes;
  });
  const one = queue("one", { concurrency: 1 });
  const work = workflow("work", { queue: one }, async (ctx, n: number) =>
    ctx.run("work", async () => {
      begun.open();
      if (n === 0) await full.opened;
      return n;
    }),
  );
  await using engine = await createEngine({ store, definitions: [work] });
  const first = await engine.start(work, 0);
  await begun.opened;
  const second = await engine.start(work, 1);
  expect(await first.result()).toBe(0);
  answer.open();
  expect(await second.result()).toBe(1);
});
