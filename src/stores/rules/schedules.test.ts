import { expect, test } from "vitest";
import { RowStore } from "../../../test/stores/differential/row-store.ts";
import { runRow } from "../../../test/stores/rows.ts";
import type { ScheduleState } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";
import { applyPutSchedule, applyRemoveSchedule, findDueSchedules, findSchedule, listSchedules } from "./schedules.ts";

const NOW = 1_000_000;

function schedule(name: string, more: Partial<ScheduleState> = {}): ScheduleState {
  return {
    name,
    definition: "report",
    version: 1,
    input: undefined,
    timing: { everyMs: 60_000, anchor: 0 },
    overlap: "skip",
    catchUp: "last",
    jitterMs: 0,
    paused: false,
    nextAt: NOW,
    dueAt: NOW,
    lastAt: undefined,
    lastRun: undefined,
    queued: [],
    ...more,
  };
}

class World {
  readonly store = new RowStore(() => NOW);

  put(state: ScheduleState, fence?: string, token = "t1"): Promise<string> {
    const write = { write: "put-schedule", schedule: state, fence, token, starts: [] } as const;
    return this.store.transact(NOW, (tx) => applyPutSchedule(tx, write).status);
  }

  async due(definitions: readonly string[], now = NOW, limit = 10) {
    const { due, nextAt } = await this.store.read((rows) => findDueSchedules(rows, now, definitions, limit));
    return { due: due.map(({ name }) => name).toSorted(), nextAt };
  }

  names(after: string, limit: number): Promise<readonly string[]> {
    return this.store.read((rows) => listSchedules(rows, after, limit).map(({ name }) => name));
  }
}

test("a schedule is read back as it was put, by cron or by interval", async () => {
  const world = new World();
  const cron = schedule("cron", {
    timing: { cron: "0 9 * * *", timeZone: "Europe/Berlin" },
    input: "[1]",
    queued: [7],
  });
  await world.put(cron);
  await world.put(schedule("every"));
  const read = (name: string) => world.store.read((rows) => findSchedule(rows, name));
  expect(await read("cron")).toMatchObject({ ...cron, token: "t1", createdAt: NOW });
  expect(await read("every")).toMatchObject({ timing: { everyMs: 60_000, anchor: 0 }, queued: [], input: undefined });
  expect(await read("none")).toBeUndefined();
});

test("a schedule that changed since it was read is not overwritten, and a second one of the name is not created", async () => {
  const world = new World();
  expect(await world.put(schedule("a"))).toBe("committed");
  expect(await world.put(schedule("a"))).toBe("changed");
  expect(await world.put(schedule("a", { paused: true }), "other")).toBe("changed");
  expect(await world.put(schedule("a", { paused: true }), "t1", "t2")).toBe("committed");
  expect(await world.put(schedule("a"), "t1")).toBe("changed");
  expect(await world.put(schedule("b"), "t1")).toBe("changed");
});

test("due are schedules of known definitions whose time has come, and the next time is the earliest of them", async () => {
  const world = new World();
  await world.put(schedule("past", { dueAt: NOW - 5 }));
  await world.put(schedule("now"));
  await world.put(schedule("later", { definition: "cleanup", dueAt: NOW + 50 }));
  await world.put(schedule("unknown", { definition: "other", dueAt: NOW - 50 }));
  await world.put(schedule("paused", { dueAt: undefined }));
  expect(await world.due(["report", "cleanup"])).toEqual({ due: ["now", "past"], nextAt: NOW - 5 });
  expect(await world.due(["cleanup"])).toEqual({ due: [], nextAt: NOW + 50 });
  expect(await world.due(["report"], NOW - 1)).toEqual({ due: ["past"], nextAt: NOW - 5 });
  expect((await world.due(["report"], NOW, 1)).due).toEqual(["past"]);
  expect(await world.due([])).toEqual({ due: [], nextAt: undefined });
});

test("a schedule with queued times is due when its last run has ended or is gone", async () => {
  const world = new World();
  const waiting = { dueAt: NOW + 500, queued: [NOW] };
  await world.put(schedule("ended", { ...waiting, lastRun: "run-1" }));
  await world.put(schedule("running", { ...waiting, lastRun: "run-2" }));
  await world.put(schedule("gone", { ...waiting, lastRun: "run-3" }));
  await world.put(schedule("nothing queued", { dueAt: NOW + 500, lastRun: "run-1" }));
  await world.store.transact(NOW, ({ rows }) => {
    rows.insert("runs", runRow(1, { status: "completed" }) as RowOf<"runs">);
    rows.insert("runs", runRow(2, { status: "running" }) as RowOf<"runs">);
  });
  expect(await world.due(["report"])).toEqual({ due: ["ended", "gone"], nextAt: NOW + 500 });
});

test("a list is ordered by name; a negative limit means all", async () => {
  const world = new World();
  for (const name of ["c", "a", "d", "b"]) await world.put(schedule(name));
  expect(await world.names("", 2)).toEqual(["a", "b"]);
  expect(await world.names("b", 2)).toEqual(["c", "d"]);
  expect(await world.names("", -1)).toEqual(["a", "b", "c", "d"]);
});

test("removing a schedule twice says that there is none", async () => {
  const world = new World();
  await world.put(schedule("a"));
  const remove = () =>
    world.store.transact(NOW, (tx) => applyRemoveSchedule(tx, { write: "remove-schedule", name: "a" }));
  expect(await remove()).toEqual({ status: "committed" });
  expect(await remove()).toEqual({ status: "no_schedule" });
});
