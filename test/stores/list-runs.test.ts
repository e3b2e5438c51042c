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

interface Listed {
  readonly row: RowOf<"runs">;
  readonly tags: readonly string[];
}

function crowd(): readonly Listed[] {
  return Array.from({ length: COUNT }, (_, at): Listed => {
    const run = at + 1;
    const row: RowOf<"runs"> = {
      ...(runRow(run) as RowOf<"runs">),
      id: `run-${run}`,
      definition: run % 3 === 0 ? "shop" : "mail",
      kind: run % 5 === 0 ? "graph" : "workflow",
      status: STATUSES[run % STATUSES.length]!,
      evidence: run % 2 === 0 ? '"long"' : null,
    };
    return { row, tags: ["z", ...(run % 2 === 0 ? ["even"] : []), ...(run % 50 === 0 ? ["rare", "a"] : [])] };
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
          for (const before of [undefined, 77])
            for (const limit of [1, 7, 200])
              yield {
                limit,
                ...(statuses !== undefined && { statuses }),
                ...(definition !== undefined && { definition }),
                ...(kind !== undefined && { kind }),
                ...(tag !== undefined && { tag }),
                ...(before !== undefined && { before }),
              };
}

function expectedIn(all: readonly Listed[], filter: RunFilter): readonly (readonly [number, readonly string[]])[] {
  const { definition, kind, statuses, tag, before = Number.MAX_SAFE_INTEGER, limit } = filter;
  return all
    .filter(
      ({ row, tags }) =>
        row.run < before &&
        (definition === undefined || row.definition === definition) &&
        (kind === undefined || row.kind === kind) &&
        (statuses === undefined || statuses.includes(row.status)) &&
        (tag === undefined || tags.includes(tag)),
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
  for (const filter of filters()) {
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
  expect(await trips({ tag: "no" })).toBe(1);
  expect(await trips({ tag: "even" })).toBe(2);
  // Four pages of twenty runs of the tag, two round trips each.
  expect(await trips({ tag: "even", definition: "none" })).toBe(8);
  await close();
});
