import assert from "node:assert/strict";
import type { EpochMs } from "../../base/index.ts";
import type { PutScheduleOutcome, PutScheduleWrite, ScheduleRecord, ScheduleState, Store } from "../../kernel/index.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimTurns,
  commitTurn,
  COMPLETES,
  newRun,
  newToken,
  registerWorker,
  startHeld,
  startRun,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

function state(name: string, nextAt: EpochMs, overrides: Partial<ScheduleState> = {}): ScheduleState {
  return {
    name,
    definition: "checkout",
    version: 1,
    input: undefined,
    timing: { everyMs: 60_000, anchor: nextAt },
    overlap: "skip",
    catchUp: "last",
    jitterMs: 0,
    paused: false,
    nextAt,
    dueAt: nextAt,
    lastAt: undefined,
    lastRun: undefined,
    queued: [],
    ...overrides,
  };
}

function put(schedule: ScheduleState, more: Partial<PutScheduleWrite> = {}): PutScheduleWrite {
  return { write: "put-schedule", fence: undefined, token: newToken(), schedule, starts: [], ...more };
}

type Committed = PutScheduleOutcome & { readonly status: "committed" };

async function commit(store: Store, write: PutScheduleWrite): Promise<Committed> {
  const [outcome] = await store.write([write]);
  assert.equal(outcome.status, "committed");
  return outcome as Committed;
}

async function made(store: Store, schedule: ScheduleState): Promise<ScheduleRecord> {
  return (await commit(store, put(schedule))).record;
}

async function dueNames(store: Store, definitions: readonly string[] = ["checkout"]): Promise<readonly string[]> {
  return (await store.dueSchedules(definitions, 100)).due.map(({ name }) => name).toSorted();
}

const CANCEL = { type: "CancelRequested", target: "", data: "{}" } as const;

export const scheduleCases: readonly StoreCase[] = [
  storeCase("a schedule is read as it was written", async (store) => {
    const now = store.now();
    const daily: ScheduleState = {
      ...state("täglich/№ 1", now + 1),
      input: '{"b": 1 ,"a":"ä\u2028"}',
      version: 7,
      timing: { cron: "0 9 * * MON-FRI", timeZone: "Europe/Berlin" },
      overlap: "queue",
      catchUp: "all",
      jitterMs: 5_000,
      dueAt: now + 3_000,
      lastAt: now - 60_000,
      lastRun: "unknown",
      queued: [now - 30_000, now - 20_000],
    };
    const token = newToken();
    const { record } = await commit(store, put(daily, { token }));
    assert.deepEqual(record, { ...daily, token, createdAt: now, lastStatus: undefined });
    assert.deepEqual(await store.findSchedule(daily.name), record);
    assert.equal(await store.findSchedule("Täglich/№ 1"), undefined);
    const paused = { ...state(daily.name, now), nextAt: undefined, dueAt: undefined, paused: true };
    const next = await commit(store, put(paused, { fence: token, token: "another" }));
    assert.deepEqual(next.record, { ...paused, token: "another", createdAt: now, lastStatus: undefined });
  }),

  storeCase(
    "of two writes with the token of the same read, the first one writes and the second one is refused",
    async (store) => {
      const { token: fence, ...read } = await made(store, state("tick", store.now()));
      const first = put(state("tick", store.now() + 60_000), { fence, starts: [newRun("first")] });
      const second = put(state("tick", store.now() + 90_000), { fence, starts: [newRun("second")] });
      assert.equal(read.nextAt, store.now());
      const [won, lost] = await store.write([first, second]);
      assert.equal(won.status, "committed");
      assert.deepEqual(lost, { status: "changed" });
      assert.equal((await store.findSchedule("tick"))?.token, first.token);
      assert.equal(await store.findRun("second"), undefined);
      await assertNothingWritten(store, async () => {
        assert.deepEqual(await store.write([second]), [{ status: "changed" }]);
      });
    },
  ),

  storeCase("a schedule that exists is not created again", async (store) => {
    const before = await made(store, state("tick", store.now() + 5));
    assert.deepEqual(await store.write([put(state("tick", store.now() + 9))]), [{ status: "changed" }]);
    assert.deepEqual(await store.findSchedule("tick"), before);
    assert.deepEqual(await store.write([put(state("tock", 0), { fence: before.token })]), [{ status: "changed" }]);
    assert.equal(await store.findSchedule("tock"), undefined);
  }),

  storeCase("a firing starts its runs in the write of the row, and skips an id that is taken", async (store) => {
    const worker = await registerWorker(store);
    const { token: fence } = await made(store, state("tick", store.now()));
    const taken = await startRun(store, "tick/2");
    const starts = ["tick/1", "tick/2", "tick/3"].map((id) => newRun(id, { tags: ["schedule:tick"] }));
    const fired = { ...state("tick", store.now() + 60_000), lastAt: store.now(), lastRun: "tick/3" };
    const { started, record, cancelled } = await commit(store, put(fired, { fence, starts }));
    assert.deepEqual(
      started.map(({ id, status }) => [id, status]),
      [
        ["tick/1", "queued"],
        ["tick/3", "queued"],
      ],
    );
    assert.equal(cancelled, undefined);
    assert.equal(record.lastStatus, "queued");
    assert.deepEqual(await store.findRun("tick/2"), taken);
    assert.deepEqual((await store.findRun("tick/3"))?.tags, ["schedule:tick"]);
    assert.equal((await claimTurns(store, worker)).length, 3);
  }),

  storeCase("dueSchedules returns the due schedules of the named definitions, and the next time", async (store, t) => {
    const now = store.now();
    await made(store, state("late", now + 200));
    await made(store, state("early", now + 100));
    await made(store, state("other", now + 50, { definition: "refund" }));
    assert.deepEqual(await store.dueSchedules(["checkout"], 9), { due: [], nextAt: now + 100 });
    assert.deepEqual(await store.dueSchedules(["checkout", "refund"], 9), { due: [], nextAt: now + 50 });
    assert.deepEqual(await store.dueSchedules(["unknown"], 9), { due: [], nextAt: undefined });
    t.clock.advance(99);
    assert.deepEqual(await dueNames(store), []);
    t.clock.advance(1);
    assert.deepEqual(await store.dueSchedules(["checkout"], 9), {
      due: [await store.findSchedule("early")],
      nextAt: now + 100,
    });
    t.clock.advance(1_000);
    assert.deepEqual(await dueNames(store), ["early", "late"]);
    assert.deepEqual((await store.dueSchedules(["checkout"], 1)).due.length, 1);
    assert.deepEqual(await dueNames(store, ["refund"]), ["other"]);
  }),

  storeCase("a schedule that is paused or has no next time is not due", async (store) => {
    const now = store.now();
    await made(store, state("paused", now, { paused: true, dueAt: undefined, queued: [now - 1] }));
    await made(store, state("over", now, { nextAt: undefined, dueAt: undefined }));
    assert.deepEqual(await store.dueSchedules(["checkout"], 9), { due: [], nextAt: undefined });
  }),

  storeCase("a schedule with a queued time is due once its last run has ended or is deleted", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "tick/1");
    const later = store.now() + 60_000;
    const line = [store.now() - 2];
    await made(store, state("tick", later, { queued: line, lastRun: "tick/1", overlap: "queue" }));
    assert.deepEqual(await store.dueSchedules(["checkout"], 9), { due: [], nextAt: later });
    await commitTurn(store, held, COMPLETES);
    assert.deepEqual(await dueNames(store, ["refund"]), []);
    const { due } = await store.dueSchedules(["checkout"], 9);
    assert.deepEqual(
      due.map(({ name, lastStatus }) => [name, lastStatus]),
      [["tick", "completed"]],
    );
    t.clock.advance(1_000);
    await store.prune(store.now());
    assert.equal((await store.findSchedule("tick"))?.lastStatus, undefined);
    assert.deepEqual(await dueNames(store), ["tick"]);
  }),

  storeCase("a firing can cancel the run before it, if that is still live", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "tick/1");
    const first = await made(store, state("tick", store.now()));
    const cancel = { to: "tick/1", arrival: CANCEL };
    const next = await commit(store, put(state("tick", store.now() + 1), { fence: first.token, cancel }));
    assert.equal(next.cancelled, held.run);
    const [row] = await store.readInbox(held.run, 0);
    assert.deepEqual([row?.type, row?.data], ["CancelRequested", "{}"]);
    await commitTurn(store, held, { ...COMPLETES, read: 1 });
    for (const to of ["tick/1", "unknown"]) {
      const { token: fence } = (await store.findSchedule("tick"))!;
      const again = await commit(
        store,
        put(state("tick", store.now() + 2), { fence, cancel: { to, arrival: CANCEL } }),
      );
      assert.equal(again.cancelled, undefined);
    }
  }),

  storeCase(
    "a removed schedule and its token are deleted, also when a schedule of its name is created again",
    async (store) => {
      const old = await made(store, state("tick", store.now()));
      assert.deepEqual(await store.write([{ write: "remove-schedule", name: "tick" }]), [{ status: "committed" }]);
      assert.deepEqual(await store.write([{ write: "remove-schedule", name: "tick" }]), [{ status: "no_schedule" }]);
      assert.equal(await store.findSchedule("tick"), undefined);
      assert.deepEqual(await dueNames(store), []);
      assert.deepEqual(await store.write([put(state("tick", store.now()), { fence: old.token })]), [
        { status: "changed" },
      ]);
      const created = await made(store, state("tick", store.now() + 1));
      assert.deepEqual(await store.write([put(state("tick", 0), { fence: old.token })]), [{ status: "changed" }]);
      assert.deepEqual(await store.findSchedule("tick"), created);
    },
  ),

  storeCase("schedules are listed by name, page by page", async (store) => {
    for (const name of ["c", "a", "d", "b"]) await made(store, state(name, store.now()));
    const names = async (after: string, limit: number) =>
      (await store.listSchedules(after, limit)).map(({ name }) => name);
    assert.deepEqual(await names("", 10), ["a", "b", "c", "d"]);
    assert.deepEqual(await names("", 2), ["a", "b"]);
    assert.deepEqual(await names("b", 2), ["c", "d"]);
    assert.deepEqual(await names("d", 2), []);
    assert.deepEqual(await store.listSchedules("c", 1), [await store.findSchedule("d")]);
  }),

  storeCase("a time that two connections fire at once is fired once", async (store, t) => {
    const other = await t.openAgain();
    for (let n = 0; n < 5; n += 1) {
      const { token: fence } = await made(store, state(`tick-${n}`, store.now()));
      const fire = (by: Store, id: string) =>
        by.write([put(state(`tick-${n}`, store.now() + 60_000), { fence, starts: [newRun(`${id}-${n}`)] })]);
      const outcomes = await Promise.all([fire(store, "mine"), fire(other, "theirs")]);
      assert.deepEqual(outcomes.map(([{ status }]) => status).toSorted(), ["changed", "committed"]);
      assert.equal((await store.listRuns({ limit: 100 })).length, n + 1);
    }
  }),
];
