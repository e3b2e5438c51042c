import type { DueSchedules, PutScheduleWrite, ScheduleRecord, Store, Write } from "../../../src/kernel/index.ts";
import { answering, changed, methods, rewriting, without, type Mutant } from "./mutant.ts";

function puts(name: string, rewrite: (put: PutScheduleWrite, store: Store) => Write | Promise<Write>): Mutant {
  return rewriting(name, (write, store) => (write.write === "put-schedule" ? rewrite(write, store) : write));
}

function due(name: string, change: (found: DueSchedules, all: readonly ScheduleRecord[]) => DueSchedules): Mutant {
  return methods(name, (store) => ({
    dueSchedules: async (definitions: readonly string[], limit: number) =>
      change(await store.dueSchedules(definitions, limit), await store.listSchedules("", 1_000)),
  }));
}

export const schedulesMutants: readonly Mutant[] = [
  puts("the token of a schedule is not checked", async (put, store) => {
    const present = await store.findSchedule(put.schedule.name);
    return { ...without(put, "fence"), fence: present?.token };
  }),
  answering("a rejected write of a schedule returns committed", async (outcome, write, store) => {
    if (write.write !== "put-schedule" || !("status" in outcome) || outcome.status !== "changed") return outcome;
    const record = await store.findSchedule(write.schedule.name);
    return record === undefined ? outcome : { status: "committed", record, started: [], cancelled: undefined };
  }),
  {
    name: "the runs of a schedule are started apart from its row",
    wrap: (store) =>
      changed(store, {
        async write(writes: readonly Write[]) {
          for (const write of writes)
            if (write.write === "put-schedule")
              await store.write(write.starts.map((run) => ({ write: "start", run }) as const));
          return store.write(writes);
        },
      }),
  },
  puts("a firing starts nothing", (put) => ({ ...put, starts: [] })),
  puts("a firing does not cancel the run before it", (put) => without(put, "cancel")),
  puts("a schedule loses its input", (put) => ({ ...put, schedule: { ...put.schedule, input: undefined } })),
  rewriting("a removed schedule stays", (write) =>
    write.write === "remove-schedule" ? { ...write, name: `${write.name} ` } : write,
  ),
  methods("schedules are due for every definition", (store) => ({
    dueSchedules: async (_definitions: readonly string[], limit: number) => {
      const all = await store.listSchedules("", 1_000);
      return store.dueSchedules([...new Set(all.map(({ definition }) => definition))], limit);
    },
  })),
  due("a schedule is due before its time", (found, all) => ({ ...found, due: all.filter(({ dueAt }) => dueAt) })),
  due("a paused schedule is due", ({ nextAt }, all) => ({ nextAt, due: all.filter(({ paused }) => paused) })),
  due("a queued time is due at once", ({ due: found, nextAt }, all) => ({
    nextAt,
    due: [...found, ...all.filter(({ queued: line }) => line.length > 0)],
  })),
  due("a queued time is never due", ({ due: found, nextAt }) => ({
    nextAt,
    due: found.filter(({ queued: line }) => line.length === 0),
  })),
  methods("schedules are listed backwards", (store) => ({
    listSchedules: async (after: string, limit: number) => (await store.listSchedules(after, limit)).toReversed(),
  })),
];
