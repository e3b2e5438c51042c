// Schedules: when runs are started, and what happens when they cannot be on time.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { aesGcm, createEngine, promise, workflow, type ScheduleOptions } from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { z } from "zod";
import { collect, createFolder, createGate, rejection, storeAround, watchEvents } from "./world.ts";

const tick = workflow("tick", async (ctx, label: string) => ctx.run("tick", () => label));
const slow = workflow("slow", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
const nap = workflow("nap", async (ctx) => ctx.sleep("90 minutes"));
const definitions = [tick, slow, nap] as const;
type Engine = TestEngine<typeof tick | typeof slow | typeof nap>;

const NOON = new Date("2026-11-16T12:00:00Z");

async function ids(engine: Pick<Engine, "list">): Promise<string[]> {
  return (await collect(engine.list())).map(({ id }) => id).toReversed();
}

/** The planned times of the runs, as `T` and the time of day where the day does not matter. */
async function fired(engine: Pick<Engine, "list">): Promise<string[]> {
  return (await ids(engine)).map((id) => id.slice(id.indexOf("/") + 1).replace("2026-11-16T", ""));
}

function at(time: string): Date {
  return new Date(`2026-11-16T${time}Z`);
}

async function engineAt(now: Date | string = NOON): Promise<Engine> {
  return createTestEngine({ definitions, now: new Date(now) });
}

test("a cron schedule starts a run at each of its times, with id and tag of the schedule", async () => {
  await using engine = await engineAt("2026-11-16T08:59:00Z");
  const schedule = await engine.schedule("report", tick, "daily", { cron: "0 9 * * *" });
  expect((await schedule.info()).nextAt).toEqual(at("09:00:00"));
  await engine.clock.advance("59s");
  expect(await ids(engine)).toEqual([]);
  await engine.clock.advance("1s");
  expect(await ids(engine)).toEqual(["report/2026-11-16T09:00:00Z"]);
  await engine.clock.advance("2 days");
  expect(await ids(engine)).toEqual([
    "report/2026-11-16T09:00:00Z",
    "report/2026-11-17T09:00:00Z",
    "report/2026-11-18T09:00:00Z",
  ]);
  const [last] = await collect(engine.list({ tag: "schedule:report", limit: 1 }));
  expect(last).toMatchObject({ id: "report/2026-11-18T09:00:00Z", definition: "tick", status: "completed" });
  expect(await engine.get(tick, last!.id).result()).toBe("daily");
  expect((await engine.get(tick, last!.id).verify()).status).toBe("same");
  expect(await schedule.info()).toEqual({
    name: "report",
    definition: "tick",
    cron: "0 9 * * *",
    timeZone: "UTC",
    overlap: "skip",
    catchUp: "last",
    jitterMs: 0,
    paused: false,
    nextAt: new Date("2026-11-19T09:00:00Z"),
    lastAt: new Date("2026-11-18T09:00:00Z"),
    lastRun: "report/2026-11-18T09:00:00Z",
    lastStatus: "completed",
    waiting: [],
    createdAt: new Date("2026-11-16T08:59:00Z"),
  });
});

test("an interval is counted from where the schedule was made and does not drift, however late it is fired", async () => {
  await using engine = await engineAt("2026-11-16T12:00:07.250Z");
  await engine.schedule("beat", tick, "x", { every: "10 minutes" });
  await engine.clock.advance("35 minutes");
  await engine.crash();
  await engine.clock.advance("4 minutes");
  await engine.crash();
  await engine.clock.advance("11 minutes");
  expect(await fired(engine)).toEqual([
    "12:10:07.250Z",
    "12:20:07.250Z",
    "12:30:07.250Z",
    "12:40:07.250Z",
    "12:50:07.250Z",
  ]);
});

test.each([
  ["Europe/Berlin", "30 2 * * *", "2026-03-28", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]],
  ["Europe/Berlin", "30 2 * * *", "2026-10-24", ["10-24T00:30", "10-25T00:30", "10-26T01:30"]],
  ["America/New_York", "30 2 * * *", "2026-03-07", ["03-07T07:30", "03-08T07:00", "03-09T06:30"]],
  ["America/New_York", "30 1 * * *", "2026-10-31", ["10-31T05:30", "11-01T05:30", "11-02T06:30"]],
])("in %s, %s from %s is fired once a day, also when the clocks change", async (timeZone, cron, day, expected) => {
  await using engine = await engineAt(`${day}T00:00:00Z`);
  await engine.schedule("night", tick, "x", { cron, timeZone });
  await engine.clock.advance("70 hours");
  expect(await ids(engine)).toEqual(expected.map((time) => `night/2026-${time}:00Z`));
});

test("seconds, names of days and nicknames are understood", async () => {
  await using engine = await engineAt();
  for (const cron of ["*/15 * * * * *", "0 9 * * MON-FRI", "@hourly", "0 0 L * *"])
    expect((await (await engine.schedule(cron, tick, "x", { cron })).info()).cron).toBe(cron);
  await engine.clock.advance("31s");
  expect((await ids(engine)).map((id) => id.slice(-9))).toEqual(["12:00:15Z", "12:00:30Z"]);
});

// ── overlap ──

test("overlap skip: while a run is live, its planned times are skipped; the next one after it fires", async () => {
  using watched = watchEvents();
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", nap, undefined, { cron: "0 * * * *" });
  await engine.clock.advance("4.5 hours");
  expect(await fired(engine)).toEqual(["13:00:00Z", "15:00:00Z"]);
  expect((await schedule.info()).lastAt).toEqual(at("15:00:00"));
  const published = watched.events.filter(({ event }) => event.startsWith("schedule."));
  expect(published).toEqual([
    { event: "schedule.fired", schedule: "sync", run: "sync/2026-11-16T13:00:00Z" },
    { event: "schedule.skipped", schedule: "sync", at: at("14:00:00") },
    { event: "schedule.fired", schedule: "sync", run: "sync/2026-11-16T15:00:00Z" },
    { event: "schedule.skipped", schedule: "sync", at: at("16:00:00") },
  ]);
});

test("overlap queue: at most one run is live, and no planned time is lost", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", nap, undefined, { cron: "0 * * * *", overlap: "queue" });
  await engine.clock.advance("2.25 hours");
  expect(await fired(engine)).toEqual(["13:00:00Z"]);
  expect((await schedule.info()).waiting).toEqual([at("14:00:00")]);
  // 13:00 to 14:30, 14:30 to 16:00, 16:00 to 17:30
  await engine.clock.advance("4.5 hours");
  const runs = (await collect(engine.list())).toReversed();
  expect(runs.map(({ id, createdAt }) => [id.slice(-9), createdAt.toISOString().slice(11, 16)])).toEqual([
    ["13:00:00Z", "13:00"],
    ["14:00:00Z", "14:30"],
    ["15:00:00Z", "16:00"],
    ["16:00:00Z", "17:30"],
  ]);
  expect((await schedule.info()).waiting).toEqual([at("17:00:00"), at("18:00:00")]);
});

test("overlap cancel: the previous run is cancelled, and the next one starts", async () => {
  await using engine = await engineAt();
  await engine.schedule("sync", slow, undefined, { cron: "0 * * * *", overlap: "cancel" });
  await engine.clock.advance("3.5 hours");
  const runs = (await collect(engine.list())).toReversed();
  expect(runs.map(({ id, status }) => [id.slice(-9), status])).toEqual([
    ["13:00:00Z", "cancelled"],
    ["14:00:00Z", "cancelled"],
    ["15:00:00Z", "waiting"],
  ]);
  const why = await rejection(engine.get(slow, runs[0]!.id).result());
  expect(why.message).toContain("next run of the schedule sync");
});

test("overlap allow: every time is fired", async () => {
  await using engine = await engineAt();
  await engine.schedule("sync", slow, undefined, { cron: "0 * * * *", overlap: "allow" });
  await engine.clock.advance("3.5 hours");
  expect((await collect(engine.list({ status: "waiting" }))).length).toBe(3);
});

test("when a caller cancels the live run, the next queued time starts", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", slow, undefined, { cron: "0 * * * *", overlap: "queue" });
  await engine.clock.advance("2.5 hours");
  expect(await fired(engine)).toEqual(["13:00:00Z"]);
  await engine.get(slow, "sync/2026-11-16T13:00:00Z").cancel();
  await engine.clock.advance(0);
  expect(await fired(engine)).toEqual(["13:00:00Z", "14:00:00Z"]);
  expect((await schedule.info()).waiting).toEqual([]);
});

// ── catching up ──

/** The process is down from 12:30 to 17:20. */
async function down(options: ScheduleOptions): Promise<{ engine: Engine; [Symbol.asyncDispose](): Promise<void> }> {
  const folder = createFolder();
  const store = `sqlite:${folder.file("s.db")}`;
  const before = await createTestEngine({ definitions, now: NOON, store });
  await before.schedule("sync", nap, undefined, options);
  await before.clock.advance("30 minutes");
  await before.close();
  const engine = await createTestEngine({ definitions, now: at("17:20:00"), store });
  await engine.clock.advance(0);
  return { engine, [Symbol.asyncDispose]: () => engine.close().finally(() => folder[Symbol.dispose]()) };
}

test.each<[NonNullable<ScheduleOptions["catchUp"]>, string[]]>([
  ["none", []],
  ["last", ["17:00:00Z"]],
  ["all", ["13:00:00Z", "14:00:00Z", "15:00:00Z", "16:00:00Z", "17:00:00Z"]],
])("after a time without workers, catchUp %s makes up for the right runs", async (catchUp, expected) => {
  await using world = await down({ cron: "0 * * * *", catchUp, overlap: "allow" });
  expect(await fired(world.engine)).toEqual(expected);
  await world.engine.clock.advance("45 minutes");
  expect(await fired(world.engine)).toEqual([...expected, "18:00:00Z"]);
});

test("catchUp none still fires what is a few seconds late", async () => {
  await using engine = await createTestEngine({ definitions, now: NOON, worker: { lease: "20s" } });
  await engine.schedule("sync", tick, "x", { cron: "0 * * * *", catchUp: "none" });
  await engine.clock.advance("59m");
  await engine.clock.advance("50s");
  await engine.crash();
  expect(engine.clock.now()).toEqual(at("13:00:10"));
  expect(await fired(engine)).toEqual(["13:00:00Z"]);
});

test.each(["skip", "queue"] as const)("catchUp all under overlap %s runs one after the other", async (overlap) => {
  await using world = await down({ cron: "0 * * * *", catchUp: "all", overlap });
  const { engine } = world;
  const schedule = engine.getSchedule("sync");
  expect(await fired(engine)).toEqual(["13:00:00Z"]);
  expect((await schedule.info()).waiting).toHaveLength(4);
  await engine.clock.advance("90 minutes");
  expect((await fired(engine)).slice(0, 2)).toEqual(["13:00:00Z", "14:00:00Z"]);
});

test("catching up with more than a thousand missed times starts the newest thousand", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("s.db")}`;
  const before = await createTestEngine({ definitions, now: NOON, store, durability: "relaxed" });
  await before.schedule("sync", tick, "x", { every: "1 minute", catchUp: "all", overlap: "allow" });
  await before.schedule("cron", tick, "x", { cron: "* * * * *", catchUp: "all", overlap: "allow" });
  await before.close();
  const now = new Date(NOON.getTime() + 100 * 86_400_000);
  await using engine = await createTestEngine({ definitions, now, store, durability: "relaxed" });
  await engine.clock.advance(0);
  for (const name of ["sync", "cron"]) {
    const runs = await collect(engine.list({ tag: `schedule:${name}` }));
    expect(runs).toHaveLength(1_000);
    expect(runs[0]?.id).toBe(`${name}/2027-02-24T12:00:00Z`);
  }
});

// ── changing a schedule ──

test("creating the same schedule again writes nothing and keeps the next time; another timing restarts it", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "a", { every: "1 hour" });
  const info = await schedule.info();
  await engine.clock.advance("20 minutes");
  using watched = watchEvents();
  await engine.schedule("sync", "tick", "a", { every: "60 minutes", overlap: "skip" });
  expect(watched.events).toEqual([]);
  expect(await schedule.info()).toEqual(info);
  await engine.schedule("sync", tick, "b", { every: "1 hour", catchUp: "none" });
  expect(await schedule.info()).toEqual({ ...info, catchUp: "none" });
  await engine.clock.advance("40 minutes");
  expect(await engine.get(tick, "sync/2026-11-16T13:00:00Z").result()).toBe("b");
  await engine.schedule("sync", tick, "c", { every: "2 hours" });
  expect((await schedule.info()).nextAt).toEqual(at("15:00:00"));
  await engine.schedule("sync", tick, "c", { cron: "30 * * * *" });
  expect(await schedule.info()).toMatchObject({ nextAt: at("13:30:00"), createdAt: info.createdAt });
});

test("a paused schedule starts no runs, and resuming continues from now without catching up", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { cron: "0 * * * *", catchUp: "all" });
  await engine.clock.advance("1.5 hours");
  await schedule.pause();
  await schedule.pause();
  expect(await schedule.info()).toMatchObject({ paused: true });
  expect((await schedule.info()).nextAt).toBeUndefined();
  await engine.clock.advance("3 hours");
  await engine.crash();
  await engine.schedule("sync", tick, "changed while paused", { cron: "0 * * * *", catchUp: "all" });
  expect((await schedule.info()).paused).toBe(true);
  await schedule.resume();
  await schedule.resume();
  await engine.clock.advance("1 hour");
  expect(await fired(engine)).toEqual(["13:00:00Z", "17:00:00Z"]);
  expect(await engine.get(tick, "sync/2026-11-16T17:00:00Z").result()).toBe("changed while paused");
});

test("a schedule that is paused and given another timing stays paused", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { cron: "0 * * * *" });
  await schedule.pause();
  await engine.schedule("sync", tick, "x", { cron: "30 * * * *" });
  await engine.clock.advance("1 day");
  expect(await fired(engine)).toEqual([]);
  await schedule.resume();
  await engine.clock.advance("1 hour");
  expect(await ids(engine)).toEqual(["sync/2026-11-17T12:30:00Z"]);
});

test("the queued times of a paused schedule stay queued", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", nap, undefined, { cron: "0 * * * *", overlap: "queue" });
  await engine.clock.advance("2.25 hours");
  await schedule.pause();
  await engine.clock.advance("3 hours");
  expect(await fired(engine)).toEqual(["13:00:00Z"]);
  await schedule.resume();
  await engine.clock.advance(0);
  expect(await fired(engine)).toEqual(["13:00:00Z", "14:00:00Z"]);
});

test("trigger starts one run now, regardless of overlap, and keeps the next time", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", slow, undefined, { cron: "0 * * * *" });
  await engine.clock.advance("1 hour");
  const before = await schedule.info();
  const runs = [await schedule.trigger(), await schedule.trigger()];
  expect(new Set(runs.map(({ id }) => id)).size).toBe(2);
  expect(runs[0]).toMatchObject({ definition: "slow", tags: ["schedule:sync"] });
  expect(runs[0]!.id).toMatch(/^sync\/triggered-/);
  expect(await schedule.info()).toEqual(before);
  await schedule.pause();
  await schedule.trigger();
  await engine.clock.advance(0);
  expect(await collect(engine.list({ status: "waiting" }))).toHaveLength(4);
});

test("backfill starts each planned time in [from, to) once, also when called twice and when some have run", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { cron: "0 * * * *" });
  await engine.clock.advance("2 hours");
  expect(await fired(engine)).toEqual(["13:00:00Z", "14:00:00Z"]);
  expect(await schedule.backfill(at("10:00:00"), at("13:00:00"))).toEqual({ count: 3 });
  expect(await schedule.backfill(at("09:00:00"), at("14:00:00"))).toEqual({ count: 1 });
  expect(await schedule.backfill(at("09:00:00"), at("14:00:00"))).toEqual({ count: 0 });
  expect(await schedule.backfill(at("09:10:00"), at("09:10:00"))).toEqual({ count: 0 });
  expect((await fired(engine)).toSorted()).toEqual([
    "09:00:00Z",
    "10:00:00Z",
    "11:00:00Z",
    "12:00:00Z",
    "13:00:00Z",
    "14:00:00Z",
  ]);
  expect((await schedule.info()).lastAt).toEqual(at("14:00:00"));
});

test("backfill makes up for the times of a pause, and for those before an interval began", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { every: "1 hour" });
  await schedule.pause();
  await engine.clock.advance("2.5 hours");
  await schedule.resume();
  expect(await schedule.backfill(at("11:00:00"), engine.clock.now())).toEqual({ count: 4 });
  await engine.clock.advance("30 minutes");
  expect(await fired(engine)).toEqual(["11:00:00Z", "12:00:00Z", "13:00:00Z", "14:00:00Z", "15:00:00Z"]);
});

test("under overlap queue a backfill is queued", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", nap, undefined, { cron: "0 0 * * *", overlap: "queue" });
  const [from, to] = [new Date("2026-11-13T00:00:00Z"), NOON];
  expect(await schedule.backfill(from, to)).toEqual({ count: 4 });
  expect(await schedule.backfill(from, to)).toEqual({ count: 0 });
  await engine.clock.advance(0);
  expect(await ids(engine)).toEqual(["sync/2026-11-13T00:00:00Z"]);
  expect(await schedule.backfill(from, to)).toEqual({ count: 0 });
  await engine.clock.advance("6 hours");
  expect(await ids(engine)).toEqual([13, 14, 15, 16].map((day) => `sync/2026-11-${day}T00:00:00Z`));
});

test("a removed schedule fires nothing more; its runs stay, and it can be made again", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { cron: "0 * * * *" });
  await engine.clock.advance("1 hour");
  await schedule.remove();
  await schedule.remove();
  await engine.clock.advance("3 hours");
  expect(await fired(engine)).toEqual(["13:00:00Z"]);
  expect(await engine.findSchedule("sync")).toBeUndefined();
  for (const ask of ["info", "pause", "resume", "trigger"] as const)
    expect((await rejection(schedule[ask]())).code, ask).toBe("SCHEDULE_NOT_FOUND");
  expect((await rejection(schedule.backfill(at("12:00:00"), at("13:00:00")))).code).toBe("SCHEDULE_NOT_FOUND");
  await engine.schedule("sync", tick, "x", { cron: "0 * * * *" });
  await engine.clock.advance("1 hour");
  expect(await fired(engine)).toEqual(["13:00:00Z", "17:00:00Z"]);
});

test("jitter delays each run by a time of its own, within bounds, and leaves its id alone", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { cron: "0 * * * *", jitter: "20 minutes" });
  expect((await schedule.info()).nextAt).toEqual(at("13:00:00"));
  await engine.clock.advance("10 hours");
  await engine.clock.advance("20 minutes");
  const runs = (await collect(engine.list())).toReversed();
  expect(runs.map(({ id }) => id)).toEqual(
    [13, 14, 15, 16, 17, 18, 19, 20, 21, 22].map((hour) => `sync/2026-11-16T${hour}:00:00Z`),
  );
  const delays = runs.map(({ id, createdAt }) => createdAt.getTime() - new Date(id.slice(5)).getTime());
  for (const delay of delays) expect(delay).toBeLessThan(20 * 60_000);
  for (const delay of delays) expect(delay).toBeGreaterThanOrEqual(0);
  expect(new Set(delays).size).toBeGreaterThan(5);
});

test("schedules are listed by name, beyond one page", async () => {
  await using engine = await engineAt();
  const names = Array.from({ length: 150 }, (_, n) => `s-${String(n).padStart(3, "0")}`);
  for (const name of names.toReversed()) await engine.schedule(name, tick, name, { every: "1 day" });
  expect((await collect(engine.listSchedules())).map(({ name }) => name)).toEqual(names);
  expect((await engine.findSchedule("s-007"))?.name).toBe("s-007");
});

test("the input of a schedule is encrypted like every payload, and one that is damaged stops no other", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("s.db")}`;
  const codec = aesGcm({ keys: { one: Buffer.alloc(32, 1) }, current: "one" });
  const said: string[] = [];
  const logger = { info: () => {}, warn: () => {}, error: (message: string) => void said.push(message) };
  await using engine = await createTestEngine({ definitions, now: NOON, store, codec, logger });
  for (const name of ["bad", "good"]) await engine.schedule(name, tick, `canary ${name}`, { cron: "* * * * *" });
  const db = new DatabaseSync(folder.file("s.db"));
  expect(db.prepare("select 1 from schedules where instr(input, cast('canary' as blob)) > 0").all()).toEqual([]);
  db.exec("update schedules set input = (select input from schedules where name = 'good') where name = 'bad'");
  db.close();
  // Not longer: the damaged one is tried again every few seconds.
  await engine.clock.advance("2 minutes");
  expect(await ids(engine)).toEqual(["good/2026-11-16T12:01:00Z", "good/2026-11-16T12:02:00Z"]);
  expect(await engine.get(tick, "good/2026-11-16T12:02:00Z").result()).toBe("canary good");
  expect(said[0]).toContain("The input of schedule bad cannot be read");
  // Created again with a readable input, it continues from its last time.
  await engine.schedule("bad", tick, "canary bad", { cron: "* * * * *", catchUp: "all" });
  await engine.clock.advance("1 minute");
  expect(await ids(engine)).toContain("bad/2026-11-16T12:01:00Z");
});

// ── misuse ──

const strict = workflow("strict", { input: z.object({ n: z.number() }) }, async () => 1);

test.each<[string, unknown[], string, string]>([
  ["no timing", ["x", tick, "", {}], "BAD_SCHEDULE", "neither"],
  ["two timings", ["x", tick, "", { cron: "* * * * *", every: 1_000 }], "BAD_SCHEDULE", "both"],
  ["a pattern that is none", ["x", tick, "", { cron: "every day" }], "BAD_SCHEDULE", '"every day"'],
  ["four fields", ["x", tick, "", { cron: "* * * *" }], "BAD_SCHEDULE", "five fields"],
  ["seven fields", ["x", tick, "", { cron: "* * * * * * *" }], "BAD_SCHEDULE", "five fields"],
  ["minute 61", ["x", tick, "", { cron: "61 * * * *" }], "BAD_SCHEDULE", "61"],
  ["a date as a pattern", ["x", tick, "", { cron: "2030-01-01T00:00:00" }], "BAD_SCHEDULE", "five fields"],
  ["the moment of reading", ["x", tick, "", { cron: "? * * * *" }], "BAD_SCHEDULE", "five fields"],
  ["30 February", ["x", tick, "", { cron: "0 0 30 2 *" }], "BAD_SCHEDULE", "never matches a date"],
  ["a pattern that is no text", ["x", tick, "", { cron: 5 }], "BAD_SCHEDULE", "number"],
  ["a zone that is none", ["x", tick, "", { cron: "@daily", timeZone: "Mars/Phobos" }], "BAD_SCHEDULE", "Mars/Phobos"],
  ["a zone for an interval", ["x", tick, "", { every: "1h", timeZone: "UTC" }], "BAD_SCHEDULE", "timeZone"],
  ["no interval", ["x", tick, "", { every: 0 }], "BAD_SCHEDULE", "at least a second"],
  ["a negative interval", ["x", tick, "", { every: -5_000 }], "BAD_DURATION", "every"],
  ["an interval of ages", ["x", tick, "", { every: 1e15 }], "BAD_SCHEDULE", "ten years"],
  ["an unknown overlap", ["x", tick, "", { every: "1h", overlap: "wait" }], "BAD_SCHEDULE", '"queue"'],
  ["an unknown catch-up", ["x", tick, "", { every: "1h", catchUp: "some" }], "BAD_SCHEDULE", '"last"'],
  ["cancel and all", ["x", tick, "", { every: "1h", overlap: "cancel", catchUp: "all" }], "BAD_SCHEDULE", "cancel"],
  ["a jitter too long", ["x", tick, "", { every: "1h", jitter: "61 minutes" }], "BAD_SCHEDULE", "does not fit"],
  ["an unknown option", ["x", tick, "", { every: "1h", timezone: "UTC" }], "BAD_OPTIONS", "timezone"],
  ["no options", ["x", tick, "", undefined], "BAD_OPTIONS", "options"],
  ["an empty name", ["", tick, "", { every: "1h" }], "BAD_NAME", "schedule name"],
  ["a name too long", ["x".repeat(191), tick, "", { every: "1h" }], "BAD_NAME", "190"],
  ["an unknown definition", ["x", "unknown", "", { every: "1h" }], "UNKNOWN_DEFINITION", "unknown"],
  ["an input that does not fit", ["x", strict, { n: "1" }, { every: "1h" }], "BAD_INPUT", "n:"],
  ["an input that is no data", ["x", tick, () => 1, { every: "1h" }], "NOT_DATA", "input of workflow tick"],
])("%s is refused before anything is written", async (_what, args, code, part) => {
  await using engine = await createTestEngine({ definitions: [tick, strict], now: NOON });
  const error = await rejection((engine.schedule as (...args: unknown[]) => Promise<unknown>)(...args));
  expect(error.code).toBe(code);
  expect(error.message).toContain(part);
  expect(await collect(engine.listSchedules())).toEqual([]);
});

test("a backfill of the future, of too much, or of no time is refused", async () => {
  await using engine = await engineAt();
  const schedule = await engine.schedule("sync", tick, "x", { every: "1 minute" });
  const refusals = [
    [at("11:00:00"), at("12:00:01"), "have passed"],
    [at("11:00:00"), at("10:00:00"), "before"],
    [new Date("2026-11-01"), NOON, "more than 1000"],
    [new Date("nonsense"), NOON, "from"],
    [NOON, "12:00" as unknown as Date, "to"],
  ] as const;
  for (const [from, to, part] of refusals) {
    const error = await rejection(schedule.backfill(from, to));
    expect(error.code).toBe("BAD_OPTIONS");
    expect(error.message).toContain(part);
  }
  expect(await ids(engine)).toEqual([]);
});

// ── several processes ──

test("a schedule that is paused between a worker's read and its write is not fired, and stays paused", async () => {
  let isPaused = false;
  const source = storeAround(async (writes, apply) => {
    const fires = writes.some((write) => write.write === "put-schedule" && write.starts.length > 0);
    if (fires && !isPaused) {
      isPaused = true;
      const { token: fence, createdAt: _, lastStatus: __, ...state } = (await source.store.findSchedule("sync"))!;
      const schedule = { ...state, paused: true, dueAt: undefined };
      await source.store.write([{ write: "put-schedule", fence, token: "paused", schedule, starts: [] }]);
    }
    return apply();
  });
  await using engine = await createTestEngine({ definitions, now: NOON, store: source });
  const schedule = await engine.schedule("sync", tick, "x", { cron: "0 * * * *" });
  await engine.clock.advance("3 hours");
  expect(isPaused).toBe(true);
  expect(await ids(engine)).toEqual([]);
  expect((await schedule.info()).paused).toBe(true);
});

test("a worker without the definition leaves a schedule to others and does not spin", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("s.db")}`;
  const before = await createTestEngine({ definitions, now: NOON, store });
  await before.schedule("sync", tick, "x", { cron: "0 * * * *" });
  await before.close();
  {
    await using other = await createTestEngine({ definitions: [slow], now: at("14:00:00"), store });
    await other.clock.advance("1 hour");
    expect(await ids(other)).toEqual([]);
    await other.getSchedule("sync").trigger();
  }
  await using engine = await createTestEngine({ definitions, now: at("15:30:00"), store });
  await engine.clock.advance(0);
  const [triggered, planned] = await collect(engine.list()).then((runs) => runs.toReversed());
  expect(planned?.id).toBe("sync/2026-11-16T15:00:00Z");
  expect(await engine.get(tick, triggered!.id).result()).toBe("x");
});

test("with several engines on one file, exactly one of them fires each planned time", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("s.db")}`;
  const seen: string[] = [];
  const done = createGate();
  const counted = workflow("counted", async (ctx) =>
    ctx.run("count", () => {
      seen.push(ctx.runId);
      if (seen.length >= 3) done.open();
    }),
  );
  const engines = await Promise.all(
    [1, 2, 3].map(() => createEngine({ store, definitions: [counted], durability: "relaxed" })),
  );
  try {
    await Promise.all(
      engines.map((engine) =>
        engine.schedule("fast", counted, undefined, { every: "1 s", overlap: "allow", catchUp: "all" }),
      ),
    );
    await done.wait();
    const schedule = engines[0]!.getSchedule("fast");
    await schedule.pause();
    const { createdAt, lastAt } = await schedule.info();
    const planned = Math.round((lastAt!.getTime() - createdAt.getTime()) / 1_000);
    const runs = await collect(engines[1]!.list());
    expect(runs.map(({ id }) => id)).toHaveLength(planned);
    expect(new Set(seen).size).toBe(seen.length);
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
});
