// Bulk: one action on every run a filter finds.

import { expect, test } from "vitest";
import { promise, workflow, type BulkReport } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, rejection } from "./world.ts";

const waits = workflow("waits", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
const quick = workflow("quick", async () => 1);

test("an action is applied to every run it fits, page by page; the others are skipped and counted", async () => {
  await using engine = await createTestEngine({ definitions: [waits, quick] });
  for (let n = 0; n < 230; n += 1) await engine.start(waits, undefined, { tags: [n % 2 === 0 ? "even" : "odd"] });
  for (let n = 0; n < 5; n += 1) await (await engine.start(quick, undefined, { tags: ["odd"] })).result();
  const progress: BulkReport[] = [];
  expect(await engine.bulk("pause", { tag: "even" }, { onProgress: (done) => progress.push(done) })).toEqual({
    count: 115,
    skipped: 0,
  });
  expect(progress).toEqual([
    { count: 100, skipped: 0 },
    { count: 115, skipped: 0 },
  ]);
  expect(await collect(engine.list({ status: "paused" }))).toHaveLength(115);
  // While their statuses change under the filter, none is missed and none comes twice.
  expect(await engine.bulk("resume", { status: "paused", limit: 15 })).toEqual({ count: 15, skipped: 0 });
  expect(await engine.bulk("resume", { status: "paused" })).toEqual({ count: 100, skipped: 0 });
  expect(await engine.bulk("cancel", { tag: "odd" })).toEqual({ count: 115, skipped: 5 });
  await engine.clock.advance(0);
  expect(await collect(engine.list({ status: "cancelled" }))).toHaveLength(115);
  expect(await engine.bulk("terminate", { definition: "waits" })).toEqual({ count: 115, skipped: 115 });
  expect(await engine.bulk("resume", {})).toEqual({ count: 0, skipped: 235 });
});

test("an unknown action, filter or option is refused before anything is done", async () => {
  await using engine = await createTestEngine({ definitions: [waits] });
  const run = await engine.start(waits);
  expect(await rejection(engine.bulk("stop" as never, {}))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(engine.bulk("cancel", { statsu: "queued" } as never))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(engine.bulk("cancel", {}, { progress: 1 } as never))).toMatchObject({ code: "BAD_OPTIONS" });
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
});
