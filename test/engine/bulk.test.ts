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

test("a list is filtered by time, several tags, error code, text of the id and parent, together", async () => {
  const child = workflow("child", async () => 1);
  const parent = workflow("parent", async (ctx) => {
    await ctx.child(child, undefined, { id: "child-1" });
    await ctx.child(child, undefined, { id: "child-2" });
  });
  const fails = workflow("fails", async (_ctx, code: string) => {
    throw code === "" ? new RangeError("no") : Object.assign(new Error("no"), { code });
  });
  const start = new Date("2026-05-01T00:00:00Z");
  await using engine = await createTestEngine({ definitions: [waits, quick, parent, child, fails], now: start });
  const ids = async (filter: Parameters<typeof engine.list>[0]): Promise<readonly string[]> =>
    (await collect(engine.list(filter))).map(({ id }) => id);
  await engine.start(quick, undefined, { id: "old", tags: ["eu", "vip"] });
  await engine.start(fails, "CARD_DECLINED", { id: "declined", tags: ["eu"] });
  await engine.start(fails, "", { id: "range" });
  await engine.clock.advance("1 day");
  await (await engine.start(parent, undefined, { id: "parent" })).result();
  await engine.start(waits, undefined, { id: "live", tags: ["vip", "eu", "x"] });
  await engine.clock.advance("1 hour");

  expect(await ids({ createdAfter: "2 hours" })).toEqual(["live", "child-2", "child-1", "parent"]);
  expect(await ids({ createdBefore: new Date("2026-05-01T12:00:00Z") })).toEqual(["range", "declined", "old"]);
  expect(await ids({ endedAfter: "2 hours", kind: "workflow" })).toEqual(["child-2", "child-1", "parent"]);
  expect(await ids({ endedBefore: "2 hours", status: "completed" })).toEqual(["old"]);
  expect(await ids({ tag: ["eu", "vip"] })).toEqual(["live", "old"]);
  expect(await ids({ tag: ["eu", "vip"], endedAfter: start })).toEqual(["old"]);
  expect(await ids({ errorCode: "CARD_DECLINED" })).toEqual(["declined"]);
  expect(await ids({ errorCode: "RangeError", status: "failed" })).toEqual(["range"]);
  expect(await ids({ idContains: "ld-" })).toEqual(["child-2", "child-1"]);
  expect(await ids({ parent: "parent" })).toEqual(["child-2", "child-1"]);
  expect(await ids({ parent: "parent", limit: 1 })).toEqual(["child-2"]);
  const [declined] = await collect(engine.list({ idContains: "declined" }));
  expect(declined?.errorCode).toBe("CARD_DECLINED");
  expect(await engine.bulk("cancel", { createdAfter: "2 hours", tag: ["x", "eu"] })).toEqual({ count: 1, skipped: 0 });
});

test.each<[string, object, string]>([
  ["an invalid date", { createdAfter: new Date("x") }, "BAD_OPTIONS"],
  ["a text that is no duration", { endedBefore: "yesterday" }, "BAD_DURATION"],
  ["an empty text of the id", { idContains: "" }, "BAD_OPTIONS"],
  ["an error code that is no text", { errorCode: 1 }, "BAD_OPTIONS"],
  ["a tag that is no text", { tag: ["eu", 1] }, "BAD_NAME"],
  ["an unknown kind", { kind: "task" }, "BAD_OPTIONS"],
  ["a parent that does not exist", { parent: "nobody" }, "RUN_NOT_FOUND"],
])("a list with %s is refused", async (_, filter, code) => {
  await using engine = await createTestEngine({ definitions: [waits] });
  expect(await rejection(collect(engine.list(filter as never)))).toMatchObject({ code });
});
