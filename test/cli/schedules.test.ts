// reprise schedule: create needs the code, the other commands do not.

import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { command as cli, DEFINITIONS, jsonLines } from "./cli-process.ts";
import { greet } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const SCHEDULE = {
  name: "hourly",
  definition: "greet",
  cron: "0 * * * *",
  timeZone: "Europe/Berlin",
  everyMs: null,
  overlap: "queue",
  catchUp: "last",
  jitterMs: 0,
  paused: false,
  nextAt: expect.stringMatching(/:00:00\.000Z$/),
  lastAt: null,
  lastRun: null,
  lastStatus: null,
  waiting: [],
  createdAt: expect.stringMatching(/Z$/),
};

async function planned(): Promise<StoreWithRuns> {
  const store = new StoreWithRuns([greet]);
  const timing = ["--cron", "0 * * * *", "--time-zone", "Europe/Berlin", "--overlap", "queue"];
  const { code, stdout } = await store.cli("schedule", "create", "hourly", DEFINITIONS, "greet", '"Ada"', ...timing);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^created hourly {2}next in [\d.]+ [msh]/)]);
  return store;
}

test("a schedule is created, listed and shown; create again updates it", async () => {
  using store = await planned();
  expect(jsonLines((await store.cli("schedule", "list", "--json")).stdout)).toEqual([SCHEDULE]);
  const list = await store.cli("schedule", "list");
  expect(list.stdout).toMatch(
    /^SCHEDULE +DEFINITION +WHEN +NEXT +LAST RUN\nhourly +greet +0 \* \* \* \* \(Europe\/Berlin\) +in /,
  );
  expect(jsonLines((await store.cli("schedule", "show", "hourly", "--json")).stdout)).toEqual([
    { ...SCHEDULE, runs: [], waitsFor: [expect.objectContaining({ reason: "schedule", state: "planned" })] },
  ]);
  const again = ["schedule", "create", "hourly", DEFINITIONS, "greet", '"Ada"', "--every", "10m", "--json"];
  const [updated] = jsonLines((await store.cli(...again)).stdout);
  expect(updated).toMatchObject({ action: "update", schedule: { cron: null, everyMs: 600_000, overlap: "skip" } });
});

test("a schedule is paused, resumed and triggered without code; its run gets the schedule's input", async () => {
  using store = await planned();
  const [paused] = jsonLines((await store.cli("schedule", "pause", "hourly", "--json")).stdout);
  expect(paused).toMatchObject({ action: "pause", schedule: { paused: true } });
  expect((await store.cli("schedule", "list")).stdout).toContain("paused");
  expect((await store.cli("schedule", "resume", "hourly")).stdout).toMatch(/^resumed hourly {2}next in /);
  const [triggered] = jsonLines((await store.cli("schedule", "trigger", "hourly", "--json")).stdout);
  expect(triggered).toEqual({
    action: "trigger",
    name: "hourly",
    id: expect.stringMatching(/^hourly\//),
    status: "queued",
  });
  expect(await store.finish(String(triggered?.["id"]))).toMatchObject({ output: "Hello, Ada" });
  expect((await store.cli("schedule", "show", "hourly")).stdout).toMatch(/hourly\/triggered-.* completed/);
});

test("a schedule, and the id of a run that it has not started, say why no run started and what helps", async () => {
  using store = await planned();
  await store.cli("schedule", "pause", "hourly");
  const next = `reprise schedule resume hourly --store ${store.url}`;
  expect((await store.cli("schedule", "show", "hourly")).stdout).toContain(
    `\nnow\n  Schedule hourly is paused.\n    next: ${next}\n`,
  );
  const missing = await store.cli("show", "hourly/2026-11-18T02:00:00Z");
  expect(missing.stderr).toContain(
    "There is no run hourly/2026-11-18T02:00:00Z in this store. Schedule hourly is paused.",
  );
  expect(missing.stderr).toContain(`next: ${next}\n`);
});

test("a backfill starts every planned time of a period once", async () => {
  using store = await planned();
  await store.cli(
    "schedule",
    "create",
    "hourly",
    DEFINITIONS,
    "greet",
    '"Ada"',
    "--cron",
    "0 * * * *",
    "--overlap",
    "allow",
  );
  const period = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-01T03:00Z"];
  const [filled] = jsonLines((await store.cli("schedule", "backfill", "hourly", ...period, "--json")).stdout);
  expect(filled).toEqual({
    action: "backfill",
    name: "hourly",
    from: "2026-01-01T00:00:00.000Z",
    to: "2026-01-01T03:00:00.000Z",
    count: 3,
    skipped: null,
  });
  expect((await store.cli("schedule", "backfill", "hourly", ...period)).stdout).toBe("");
});

test("remove needs a confirmation; the runs stay", async () => {
  using store = await planned();
  const asked = await store.cli("schedule", "remove", "hourly");
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining("Add --yes.\n")]);
  const [removed] = jsonLines((await store.cli("schedule", "remove", "hourly", "--yes", "--json")).stdout);
  expect(removed).toEqual({ action: "remove", name: "hourly" });
  const none = await store.cli("schedule", "list");
  expect([none.code, none.stdout, none.stderr]).toEqual([0, "", expect.stringContaining("No schedules.")]);
});

test("an invalid schedule is refused and nothing is created", async () => {
  using store = new StoreWithRuns([greet]);
  const create = ["schedule", "create", "x", DEFINITIONS];
  for (const [args, expected] of [
    [[...create, "greet", "--cron", "0 0 31 2 *"], /error BAD_SCHEDULE:/],
    [[...create, "greet", "--cron", "often"], /error BAD_SCHEDULE:/],
    [[...create, "greet"], /error BAD_\w+:.*(?:cron|every)/],
    [
      [...create, "nothing", "--every", "1h"],
      /error UNKNOWN_DEFINITION: .*exports no workflow, graph or flow named nothing/,
    ],
    [[...create, "greet", "--every", "1h", "--overlap", "twice"], /Allowed choices are skip, queue, cancel, allow/],
    [
      ["schedule", "backfill", "x", "--from", "yesterday", "--to", "2026-01-01"],
      /--from: "yesterday" is not a time\. Use a day such as/,
    ],
    [["schedule", "backfill", "x", "--from", "2026-01-01T09:00", "--to", "2026-01-02"], /a time with its zone/],
    [["schedule", "lst"], /unknown command 'lst' \(Did you mean list\?\)/],
  ] as const) {
    const { code, stderr } = await store.cli(...args);
    expect([args, code]).toEqual([args, 2]);
    expect(stderr).toMatch(expected);
  }
  if (existsSync(store.folder.file("shop.db"))) expect((await store.cli("schedule", "list")).stdout).toBe("");
  using other = await planned();
  const missing = await other.cli("schedule", "pause", "nope");
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("error SCHEDULE_NOT_FOUND:")]);
});

test("`schedule` without a command prints its commands", async () => {
  const { code, stdout, stderr } = await cli(["schedule"]);
  expect(code).toBe(2);
  expect(stdout + stderr).toMatch(/list|create/);
});
