// A run may move on between the read of its row and the read of its journal.

import { createEngine, signal, workflow } from "reprise";
import { sqlite } from "reprise/sqlite";
import { expect, test } from "vitest";
import { until } from "./world.ts";

const greet = workflow("greet", { ports: { name: signal<string>() } }, async (ctx) => {
  await ctx.run("begin", () => 1);
  return `Hello, ${await ctx.receive("name")}`;
});

test("a run that moves on while it is verified is the same up to where it was", async () => {
  let beforeRead: (() => Promise<unknown>) | undefined;
  const source = sqlite(":memory:");
  const store: typeof source = {
    ...source,
    "~open": async (options) => {
      const opened = await source["~open"](options);
      const read = opened.readJournal.bind(opened);
      opened.readJournal = async (...args) => {
        const before = beforeRead;
        beforeRead = undefined;
        await before?.();
        return read(...args);
      };
      return opened;
    },
  };
  await using engine = await createEngine({ store, definitions: [greet] });
  const run = await engine.start(greet);
  await until(async () => (await run.info()).status === "waiting");
  beforeRead = async () => {
    await run.signal("name", "Ada");
    await run.result();
  };
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(beforeRead).toBeUndefined();
  expect(await run.result()).toBe("Hello, Ada");
});
