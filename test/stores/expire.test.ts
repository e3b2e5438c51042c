// Families of ended runs are deleted in bounded transactions, and a batch of retention costs two seeks when nothing is old enough; on
// SQLite and behind a network.

import { expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { rowSession as remoteRows } from "../../src/stores/remote/row-session.ts";
import { RemoteSession } from "../../src/stores/remote/session.ts";
import type { Rows, RowSession } from "../../src/stores/rows/rows.ts";
import type { RowOf } from "../../src/stores/rows/tables.ts";
import { deleteOneRun } from "../../src/stores/rules/delete-run.ts";
import { expire } from "../../src/stores/rules/expire.ts";
import { prune } from "../../src/stores/rules/prune.ts";
import { rowSession } from "../../src/stores/sqlite/row-session.ts";
import { SqliteSession } from "../../src/stores/sqlite/sqlite-session.ts";
import { SimServer } from "../simulation/store/sim-backend.ts";
import { runRow } from "./rows.ts";

const ports = { clock: systemClock, timers: systemTimers, random: systemRandom } as const;

interface Opened extends AsyncDisposable {
  readonly session: RowSession;
  /** How many runs each transaction deleted. */
  readonly deleted: number[];
}

/** `mayDelete`: false makes a transaction fail, as a kill before it would. */
function counting(
  session: RowSession,
  mayDelete: (transaction: number) => boolean,
): Omit<Opened, keyof AsyncDisposable> {
  const deleted: number[] = [];
  return {
    deleted,
    session: {
      read: (what, body) => session.read(what, body),
      async transact(what, body) {
        const count = (rows: Rows): number => rows.count("runs_by_definition", ["d"]);
        const before = await session.read(what, count);
        if (!mayDelete(deleted.length)) throw new Error("killed");
        const result = await session.transact(what, body);
        const gone = before - (await session.read(what, count));
        if (gone > 0) deleted.push(gone);
        return result;
      },
      stored: session.stored,
    },
  };
}

async function sqlite(mayDelete: (transaction: number) => boolean = () => true): Promise<Opened> {
  const session = await SqliteSession.open({ ...ports, path: ":memory:", durability: "full", migrate: true });
  return { ...counting(rowSession(session), mayDelete), [Symbol.asyncDispose]: () => session.close() };
}

async function simulated(mayDelete: (transaction: number) => boolean = () => true): Promise<Opened> {
  const server = new SimServer("rc", () => systemClock.now());
  const session = await RemoteSession.open(server.backend(), { ...ports, durability: "full" });
  return { ...counting(remoteRows(session), mayDelete), [Symbol.asyncDispose]: () => session.close() };
}

const STORES = [
  ["SQLite", sqlite],
  ["a remote store", simulated],
] as const;

function ended(run: number, more: Partial<RowOf<"runs">> = {}): RowOf<"runs"> {
  const row = runRow(run) as RowOf<"runs">;
  return { ...row, id: `run-${run}`, definition: "d", status: "completed", root: run, ended_at: 1_000, ...more };
}

function insert(session: RowSession, rows: readonly RowOf<"runs">[]): Promise<void> {
  return session.transact("Writing", (tx) => {
    for (const row of rows) tx.rows.insert("runs", row);
  });
}

const ALL = { definition: "d", status: "completed", endedBefore: 5_000 } as const;

test.each(STORES)("%s: a wide family is deleted in several transactions, its root last", async (_, open) => {
  await using store = await open();
  const children = Array.from({ length: 1_200 }, (_none, n) => ended(n + 2, { root: 1, parent: 1 }));
  await insert(store.session, [ended(1), ...children]);
  expect(await deleteOneRun(store.session, "run-1")).toEqual({ status: "deleted", runs: 1_201 });
  expect(store.deleted).toEqual([499, 499, 203]);
});

test.each(STORES)(
  "%s: a kill between the transactions of a wide family leaves a family that is deleted next",
  async (_, open) => {
    let isAlive = true;
    await using store = await open((transaction) => isAlive || transaction === 0);
    const children = Array.from({ length: 1_200 }, (_none, n) => ended(n + 2, { root: 1, parent: 1 }));
    await insert(store.session, [ended(1), ...children]);
    isAlive = false;
    await expect(prune(store.session, 5_000, {})).rejects.toThrow("killed");
    isAlive = true;
    expect(store.deleted).toEqual([499]);
    expect(await prune(store.session, 5_000, {})).toEqual({ runs: 702 });
  },
);

test.each(STORES)("%s: a retried child keeps what is left of a wide family", async (_, open) => {
  await using store = await open();
  const children = Array.from({ length: 600 }, (_none, n) => ended(n + 2, { root: 1, parent: 1 }));
  await insert(store.session, [
    ended(1),
    ...children,
    ended(700, { root: 1, parent: 1, status: "running", ended_at: null }),
  ]);
  expect(await prune(store.session, 5_000, {})).toEqual({ runs: 0 });
  expect(await deleteOneRun(store.session, "run-1")).toEqual({ status: "live", run: "run-700", as: "running" });
  expect(store.deleted).toEqual([]);
});

test.each(STORES)("%s: batches pass runs that stay, also when many ended in the same millisecond", async (_, open) => {
  await using store = await open();
  // 150 runs with a live child end in the same millisecond, then 30 without one.
  const kept = Array.from({ length: 150 }, (_none, n) => ended(n + 1));
  const children = kept.map(({ run }) =>
    ended(1_000 + run, { root: run, parent: run, ended_at: null, status: "running" }),
  );
  const others = Array.from({ length: 30 }, (_none, n) => ended(500 + n, { ended_at: 1_001 + n }));
  await insert(store.session, [...kept, ...children, ...others]);
  const first = await expire(store.session, ALL);
  expect(first).toEqual({ runs: 0, kept: 100, after: 1_000, nextEndedAt: undefined });
  expect(await expire(store.session, { ...ALL, after: first.after })).toEqual({
    runs: 30,
    kept: 0,
    after: undefined,
    nextEndedAt: undefined,
  });
});

test.each(STORES)("%s: runs that ended in the same millisecond are all deleted, batch by batch", async (_, open) => {
  await using store = await open();
  await insert(
    store.session,
    Array.from({ length: 250 }, (_none, n) => ended(n + 1)),
  );
  let after: number | undefined;
  let runs = 0;
  do {
    const batch: Awaited<ReturnType<typeof expire>> = await expire(store.session, { ...ALL, after });
    ({ after } = batch);
    runs += batch.runs;
  } while (after !== undefined);
  expect([runs, store.deleted]).toEqual([250, [100, 100, 50]]);
});

test("a batch with nothing to delete takes one round trip and no transaction", async () => {
  await using store = await simulated();
  await insert(store.session, [
    ended(1, { ended_at: 9_000 }),
    ended(2, { status: "failed" }),
    ended(3, { definition: "other" }),
  ]);
  let passes = 0;
  const session: RowSession = {
    read: (what, body) => store.session.read(what, (rows, now) => ((passes += 1), body(rows, now))),
    transact: () => Promise.reject(new Error("no transaction is needed")),
    stored: store.session.stored,
  };
  expect(await expire(session, ALL)).toEqual({ runs: 0, kept: 0, after: undefined, nextEndedAt: 9_000 });
  expect(passes - 1).toBe(1);
});
