// Lists of runs: every filter finds the same runs as a test of every row, on SQLite and behind a network, in few round trips.

import { expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { RunFilter, RunStatus } from "../../src/kernel/index.ts";
import { rowSession as remoteRows } from "../../src/stores/remote/row-session.ts";
import { RemoteSession } from "../../src/stores/remote/session.ts";
import type { Rows, RowSession } from "../../src/stores/rows/rows.ts";
import type { RowOf } from "../../src/stores/rows/tables.ts";
import { listRuns } from "../../src/stores/rules/list-runs.ts";
import { rowSession } from "../../src/stores/sqlite/row-session.ts";
import { SqliteSession } from "../../src/stores/sqlite/sqlite-session.ts";
import { SimServer } from "../simulation/store/sim-backend.ts";
import { leastNumberAt } from "../../src/kernel/index.ts";
import { runRow } from "./rows.ts";

const ports = { clock: systemClock, timers: systemTimers, random: systemRandom } as const;

interface Opened {
  readonly session: RowSession;
  readonly close: () => Promise<void>;
}

async function sqlite(): Promise<Opened> {
  const session = await SqliteSession.open({ ...ports, path: ":memory:", durability: "full", migrate: true });
  return { session: rowSession(session), close: () => session.close() };
}

async function simulated(): Promise<Opened> {
  const server = new SimServer("rc", () => systemClock.now());
  const session = await RemoteSession.open(server.backend(), { ...ports, durability: "full" });
  return { session: remoteRows(session), close: () => session.close() };
}

const STATUSES: readonly RunStatus[] = ["queued", "completed", "paused", "blocked", "determinism_violation", "failed"];
const COUNT = 150;
const START = Date.UTC(2026, 5, 1);
const MINUTE = 60_000;
/** As stores assign them: numbers grow with time. */
const numberOf = (n: number): number => leastNumberAt(START + n * MINUTE * 10) + n;

interface Listed {
  readonly row: RowOf<"runs">;
  readonly tags: readonly string[];
}

function crowd(): readonly Listed[] {
  return Array.from({ length: COUNT }, (_, at): Listed => {
    const n = at + 1;
    const run = numberOf(n);
    // Three children after every tenth run.
    const parent = n > 10 && n % 10 > 0 && n % 10 < 4 ? numberOf(n - (n % 10)) : null;
    const createdAt = START + n * MINUTE * 10;
    const row: RowOf<"runs"> = {
      ...(runRow(run) as RowOf<"runs">),
      id: `run-${n}`,
      definition: n % 3 === 0 ? "shop" : "mail",
      kind: n % 5 === 0 ? "graph" : "workflow",
      status: STATUSES[n % STATUSES.length]!,
      evidence: n % 2 === 0 ? '"long"' : null,
      parent,
      root: parent ?? run,
      created_at: createdAt,
      ended_at: n % 4 === 0 ? null : createdAt + n * MINUTE,
      error_code: n % 7 === 0 ? "CARD" : null,
    };
    return { row, tags: ["z", ...(n % 2 === 0 ? ["even"] : []), ...(n % 50 === 0 ? ["rare", "a"] : [])] };
  });
}

function insert(rows: Rows, all: readonly Listed[]): void {
  for (const { row, tags } of all) {
    rows.insert("runs", row);
    for (const [position, tag] of tags.entries()) rows.insert("tags", { run: row.run, tag, position });
  }
}

function* filters(): Generator<RunFilter> {
  const some: readonly (readonly RunStatus[] | undefined)[] = [
    undefined,
    [],
    ["failed"],
    ["failed", "paused", "failed"],
    ["failed", "queued"],
    ["running"],
  ];
  for (const statuses of some)
    for (const definition of [undefined, "shop", "none"])
      for (const kind of [undefined, "graph"] as const)
        for (const tag of [undefined, "even", "rare", "no"])
          for (const before of [undefined, numberOf(77)])
            for (const limit of [1, 7, 200])
              yield {
                limit,
                ...(statuses !== undefined && { statuses }),
                ...(definition !== undefined && { definition }),
                ...(kind !== undefined && { kind }),
                ...(tag !== undefined && { tags: [tag] }),
                ...(before !== undefined && { before }),
              };
}

const RANDOM_FILTERS = 500;

/** Combinations of all conditions, the same ones every time. */
function* randomFilters(): Generator<RunFilter> {
  let state = 14;
  const below = (count: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % count;
  };
  const time = (): number => START + below(COUNT + 20) * MINUTE * 10;
  const pick = <T>(values: readonly T[]): T => values[below(values.length)]!;
  const parts: readonly (() => Partial<RunFilter>)[] = [
    () => ({ createdAfter: time() }),
    () => ({ createdBefore: time() }),
    () => ({ endedAfter: time() }),
    () => ({ endedBefore: time() }),
    () => ({ errorCode: pick(["CARD", "none"]) }),
    () => ({ idContains: pick(["1", "run-2", "7", "%", "RUN"]) }),
    () => ({ parent: `run-${below(COUNT / 10) * 10}` }),
    () => ({ tags: pick([["even", "z"], ["z", "rare"], ["even", "no"], ["z"]]) }),
    () => ({ statuses: pick<readonly RunStatus[]>([["failed"], ["queued", "completed", "failed"]]) }),
    () => ({ definition: pick(["shop", "mail"]) }),
    () => ({ before: numberOf(below(COUNT)) }),
  ];
  for (let n = 0; n < RANDOM_FILTERS; n++)
    yield Object.assign({ limit: pick([1, 5, 200]) }, ...parts.map((part) => (below(4) === 0 ? part() : {})));
}

function expectedIn(all: readonly Listed[], filter: RunFilter): readonly (readonly [number, readonly string[]])[] {
  const { definition, kind, statuses, tags: wanted = [], before = Number.MAX_SAFE_INTEGER, limit } = filter;
  const { createdAfter = 0, createdBefore = Number.MAX_SAFE_INTEGER, errorCode, idContains = "" } = filter;
  const { endedAfter = 0, endedBefore = Number.MAX_SAFE_INTEGER, parent } = filter;
  const isByEnd = filter.endedAfter !== undefined || filter.endedBefore !== undefined;
  const parentRow = all.find(({ row }) => row.id === parent)?.row;
  return all
    .filter(({ row }) => row.created_at >= createdAfter && row.created_at < createdBefore)
    .filter(({ row: { ended_at: at } }) => !isByEnd || (at !== null && at >= endedAfter && at < endedBefore))
    .filter(({ row }) => errorCode === undefined || row.error_code === errorCode)
    .filter(({ row }) => row.id.includes(idContains))
    .filter(({ row }) => parent === undefined || (parentRow !== undefined && row.parent === parentRow.run))
    .filter(
      ({ row, tags }) =>
        row.run < before &&
        (definition === undefined || row.definition === definition) &&
        (kind === undefined || row.kind === kind) &&
        (statuses === undefined || statuses.includes(row.status)) &&
        wanted.every((tag) => tags.includes(tag)),
    )
    .toReversed()
    .slice(0, limit)
    .map(({ row, tags }) => [row.run, tags] as const);
}

test.each([
  ["SQLite", sqlite],
  ["a remote store", simulated],
])("%s: a list holds exactly the runs that match, newest first, with their tags", async (_, open) => {
  const { session, close } = await open();
  const all = crowd();
  await session.transact("Writing", ({ rows }) => insert(rows, all));
  for (const filter of [...filters(), ...randomFilters()]) {
    const found = await session.read("Listing", (rows) => listRuns(rows, filter));
    expect([filter, found.map(({ run, tags }) => [run, tags])]).toEqual([filter, expectedIn(all, filter)]);
    expect(found.every(({ evidence }) => evidence === undefined)).toBe(true);
  }
  await close();
});

test("a list takes two round trips, and by tag two for each page of its runs", async () => {
  const { session, close } = await simulated();
  await session.transact("Writing", ({ rows }) => insert(rows, crowd()));
  const trips = async (filter: Partial<RunFilter>): Promise<number> => {
    let passes = 0;
    await session.read("Listing", (rows) => {
      passes += 1;
      return listRuns(rows, { limit: 10, ...filter });
    });
    return passes - 1;
  };
  expect(await trips({})).toBe(2);
  expect(await trips({ definition: "shop", kind: "graph" })).toBe(2);
  expect(await trips({ statuses: ["failed", "paused", "blocked"] })).toBe(2);
  expect(await trips({ statuses: [] })).toBe(0);
  expect(await trips({ tags: ["no"] })).toBe(1);
  expect(await trips({ tags: ["even"] })).toBe(2);
  expect(await trips({ parent: "run-10" })).toBe(3);
  expect(await trips({ createdAfter: START + COUNT * MINUTE * 9, idContains: "run" })).toBe(2);
  // The pages of both tags come together.
  expect(await trips({ tags: ["even", "rare"] })).toBe(2);
  // Four pages of twenty runs of the tag, two round trips each.
  expect(await trips({ tags: ["even"], definition: "none" })).toBe(8);
  await close();
});

test("a list of runs that were created in a period reads only numbers of that period", async () => {
  const { session, close } = await simulated();
  await session.transact("Writing", ({ rows }) => insert(rows, crowd()));
  const read = await session.read("Listing", (rows) => {
    const spans: unknown[] = [];
    const noting = new Proxy(rows, {
      get: (target, name) =>
        name === "select"
          ? (...args: Parameters<Rows["select"]>) => (
              args[3]?.limit === 50 && spans.push(args[3]),
              target.select(...args)
            )
          : (Reflect.get(target, name, target) as unknown),
    });
    listRuns(noting, { limit: 50, createdAfter: START + 60 * MINUTE * 10, createdBefore: START + 70 * MINUTE * 10 });
    return spans[0];
  });
  expect(read).toMatchObject({
    after: leastNumberAt(START + 54 * MINUTE * 10) - 1,
    before: leastNumberAt(START + 76 * MINUTE * 10),
  });
  await close();
});

test("runs that an earlier version numbered from 1 are found by the time they were created", async () => {
  const { session, close } = await simulated();
  const old = crowd().map(({ row, tags }, at) => ({ row: { ...row, run: at + 1, root: at + 1, parent: null }, tags }));
  await session.transact("Writing", ({ rows }) => insert(rows, old));
  for (const filter of [
    { limit: 200, createdAfter: START + 60 * MINUTE * 10 },
    { limit: 200, createdBefore: START + 60 * MINUTE * 10 },
  ]) {
    const found = await session.read("Listing", (rows) => listRuns(rows, filter));
    expect(found.map(({ run, tags }) => [run, tags])).toEqual(expectedIn(old, filter));
    expect(found.length).toBeGreaterThan(50);
  }
  await close();
});
