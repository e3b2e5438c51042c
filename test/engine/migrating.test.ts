// Migrating: a live run continues with another version of its definition.

import { expect, test } from "vitest";
import { createClient, promise, queue, signal, task, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine, expectReplay, saveJournal } from "reprise/testing";
import { collect, createFolder, createGate, rejection, storeAround } from "./world.ts";

const ports = { go: promise<string>() };
const pack = task("pack", (_ctx, what: string) => `packed ${what}`);

/** Both versions pack and wait; version 2 then does something else. */
const define = (version: number, steps: { first?: string; name?: string } = {}) =>
  workflow("parcel", { ports, version }, async (ctx, what: string) => {
    const packed = await ctx.task(pack, steps.first ?? what);
    await ctx.run(steps.name ?? "weigh", () => 12);
    const answer = await ctx.promise("go");
    return `${packed}, ${answer}, version ${version}`;
  });
const [one, two] = [define(1), define(2)];
const migrated = { type: "RunMigrated", data: { from: 1, to: 2 } };

test("a waiting run that is migrated continues with the code of the other version, and its journal says so", async () => {
  await using engine = await createTestEngine({ definitions: [one, two, pack] });
  const run = await engine.start(one, "books", { id: "p" });
  await engine.clock.advance(0);
  const before = await run.info();
  await run.migrate({ version: 2 });
  expect(await run.info()).toMatchObject({ version: 2, entries: before.entries + 1 });
  // A second time changes nothing.
  await run.migrate({ version: 2 });
  expect(await run.info()).toMatchObject({ version: 2, entries: before.entries + 1 });
  await run.resolve("go", "sent");
  expect(await run.result()).toBe("packed books, sent, version 2");
  const journal = await collect(run.journal());
  expect(journal.filter(({ type }) => type === "RunMigrated")).toMatchObject([migrated]);
  expect(journal[0]).toMatchObject({ type: "RunStarted", data: { version: 1 } });
  expect(await run.verify()).toMatchObject({ status: "same" });
  const error = await rejection(run.migrate({ version: 1 }));
  expect([error.code, error.message]).toEqual(["RUN_ENDED", "Run p has ended (completed) and cannot be migrated."]);
});

test("a journal that does not fit is refused with the first difference, and nothing is written", async () => {
  const renamed = define(2, { name: "measure" });
  const other = define(3, { first: "other" });
  await using engine = await createTestEngine({ definitions: [one, renamed, other, pack] });
  const run = await engine.start(one, "books", { id: "p" });
  await engine.clock.advance(0);
  const before = await run.info();
  const error = (await rejection(run.migrate({ version: 2 }))) as RepriseError;
  expect(error).toMatchObject({
    code: "MIGRATION_REFUSED",
    details: { run: "p", from: 1, to: 2, where: "Operation(0)", expected: "measure", actual: "weigh" },
  });
  expect(error.message).toContain("Run p cannot continue with version 2 of parcel, at Operation(0): ");
  expect(error.message).toMatch(/It stays at version 1\.$/);
  // An input counts, too.
  expect(await rejection(run.migrate({ version: 3, dryRun: true }))).toMatchObject({
    code: "MIGRATION_REFUSED",
    details: { where: "Task(0)" },
  });
  expect(await rejection(run.migrate({ version: 9 }))).toMatchObject({ code: "UNKNOWN_DEFINITION" });
  expect(await run.info()).toMatchObject({ version: 1, entries: before.entries, digest: before.digest });
  await run.resolve("go", "sent");
  expect(await run.result()).toBe("packed books, sent, version 1");
});

test("a dry run replays and changes nothing; other options are refused", async () => {
  await using engine = await createTestEngine({ definitions: [one, two, pack] });
  const run = await engine.start(one, "books");
  await engine.clock.advance(0);
  await run.migrate({ version: 2, dryRun: true });
  expect(await run.info()).toMatchObject({ version: 1 });
  for (const bad of [undefined, {}, { version: 0 }, { version: "2" }, { version: 2, dryRun: 1 }, { version: 2, x: 1 }])
    expect(await rejection(run.migrate(bad as never))).toMatchObject({ code: "BAD_OPTIONS" });
});

test("a client without a worker migrates a run that a worker of the old version executes; its operation runs again", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const gate = createGate();
  const ran: number[] = [];
  const version = (number: number) =>
    workflow("slow", { version: number }, async (ctx) => {
      await ctx.sleep(1);
      return ctx.run("slow", async () => {
        ran.push(number);
        if (number === 1) await gate.wait();
        return number;
      });
    });
  const [old, next] = [version(1), version(2)];
  await using worker = await createTestEngine({ definitions: [old], store });
  const run = await worker.start(old, undefined, { id: "r" });
  await worker.clock.advance(1);
  await gate.reached;
  await using client = await createClient({ store, definitions: [next] });
  await client.get(next, "r").migrate({ version: 2 });
  gate.open();
  await worker.clock.advance("1 hour");
  // The result of the old version was not committed.
  expect((await run.info()).entries).toBe(4);
  await using newer = await createTestEngine({ definitions: [next], store });
  await newer.clock.advance(0);
  expect(await newer.get(next, "r").result()).toBe(2);
  expect(ran).toEqual([1, 2]);
  const attempts = await collect(newer.get(next, "r").attempts());
  expect(attempts.map(({ outcome, execution }) => [outcome, execution])).toEqual([
    ["returned", undefined],
    ["completed", 2],
  ]);
});

test("a run in determinism_violation continues with a version that fits; a paused run stays paused", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  {
    await using engine = await createTestEngine({ definitions: [one, pack], store });
    await engine.start(one, "books", { id: "stopped" });
    await engine.start(one, "pens", { id: "paused" });
    await engine.clock.advance(0);
    await engine.get(one, "paused").pause();
  }
  {
    await using engine = await createTestEngine({ definitions: [define(1, { name: "broken" }), pack], store });
    await engine.get("parcel", "stopped").resolve("go" as never, "sent" as never);
    expect(await rejection(engine.get("parcel", "stopped").result())).toMatchObject({ code: "DETERMINISM_VIOLATION" });
  }
  await using engine = await createTestEngine({ definitions: [two, pack], store });
  const [stopped, paused] = [engine.get(two, "stopped"), engine.get(two, "paused")];
  for (const run of [stopped, paused]) await run.migrate({ version: 2 });
  expect(await stopped.result()).toBe("packed books, sent, version 2");
  expect((await stopped.info()).error).toBeUndefined();
  await paused.resolve("go", "late");
  await engine.clock.advance("1 hour");
  expect(await paused.info()).toMatchObject({ status: "paused", version: 2 });
  await paused.resume();
  expect(await paused.result()).toBe("packed pens, late, version 2");
});

test("a run that has not started is migrated with its place in the queue, and a debounced start replaces it", async () => {
  const line = queue("line", { concurrency: 1 });
  const queued = (version: number) =>
    workflow("job", { version, ports: { end: signal() }, queue: line }, async (ctx) => {
      await ctx.receive("end");
      return version;
    });
  const [first, second] = [queued(1), queued(2)];
  await using engine = await createTestEngine({ definitions: [first, second] });
  const busy = await engine.start(first, undefined, { id: "busy" });
  const waits = await engine.start(first, undefined, { id: "waits" });
  const later = await engine.start(first, undefined, { debounce: { key: "k", by: "1 hour" } });
  await engine.clock.advance(0);
  for (const run of [waits, later]) await run.migrate({ version: 2 });
  expect([(await waits.info()).status, (await later.info()).version]).toEqual(["queued", 2]);
  await engine.start(first, undefined, { debounce: { key: "k", by: "1 hour" } });
  expect(await later.info()).toMatchObject({ version: 1, entries: 1 });
  await busy.signal("end");
  expect(await busy.result()).toBe(1);
  await waits.signal("end");
  expect(await waits.result()).toBe(2);
  expect((await collect(waits.journal())).map(({ type }) => type).slice(0, 2)).toEqual(["RunStarted", "RunMigrated"]);
  expect(await waits.verify()).toMatchObject({ status: "same" });
  await later.signal("end");
  await engine.clock.advance("2 hours");
  expect(await later.result()).toBe(1);
});

test("a run that moves on while it is replayed is replayed again, and given up after five times", async () => {
  using folder = createFolder();
  const file = folder.file("runs.db");
  const ticks = (version: number) =>
    workflow("ticks", { version, ports: { tick: signal<number>() } }, async (ctx) => {
      for (let sum = 0; sum < 10;) sum += await ctx.receive("tick");
      return version;
    });
  const [first, second] = [ticks(1), ticks(2)];
  await using worker = await createTestEngine({ definitions: [first, second], store: `sqlite:${file}` });
  const run = await worker.start(first, undefined, { id: "t" });
  let ticksLeft = 1;
  let tries = 0;
  const source = storeAround(async (writes, apply) => {
    if (!writes.some(({ write }) => write === "migrate")) return apply();
    tries += 1;
    if (ticksLeft-- > 0) await run.signal("tick", 1);
    await worker.clock.advance(0);
    return apply();
  }, file);
  await using client = await createClient({ store: source, definitions: [second] });
  await client.get(second, "t").migrate({ version: 2 });
  expect([tries, (await run.info()).version]).toEqual([2, 2]);
  await using back = await createClient({ store: source, definitions: [first] });
  [tries, ticksLeft] = [0, Number.POSITIVE_INFINITY];
  const error = await rejection(back.get(first, "t").migrate({ version: 1 }));
  expect([error.code, error.message]).toEqual([
    "USAGE",
    "Run t moved on 5 times while it was replayed. Pause it, migrate it, and resume it.",
  ]);
  expect([tries, (await run.info()).version]).toEqual([5, 2]);
});

test("the saved journal of a migrated run replays with the version it continued with", async () => {
  using folder = createFolder();
  const file = folder.file("parcel.json");
  const later = workflow("parcel", { ports, version: 2 }, async (ctx, what: string) => {
    const packed = await ctx.task(pack, what);
    await ctx.run("weigh", () => 12);
    await ctx.promise("go");
    await ctx.run("label", () => "labeled");
    return packed;
  });
  {
    await using engine = await createTestEngine({ definitions: [one, later, pack] });
    const run = await engine.start(one, "books");
    await engine.clock.advance(0);
    await run.migrate({ version: 2 });
    await run.resolve("go", "sent");
    await run.result();
    await saveJournal(run, file);
  }
  await expectReplay(file, { definitions: [one, later, pack] });
});

test("a run that is migrated ends with the new version, wherever its processes crash", async () => {
  const { output, crashes } = await crashEverywhere(one, "books", {
    definitions: [two, pack],
    drive: async (engine, id) => {
      const run = engine.get(one, id);
      await run.migrate({ version: 2 });
      await run.resolve("go", "sent");
    },
  });
  expect(output).toBe("packed books, sent, version 2");
  expect(crashes).toBeGreaterThanOrEqual(8);
});
