// The store cases on SQLite in memory. sqlite-files.test.ts runs them on files.

import { describe, expect, test } from "vitest";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";

const ONE_CONNECTION = "a database in memory belongs to its one connection";

/** The name of a case → why it cannot run in memory. */
const MEMORY_SKIPS: ReadonlyMap<string, string> = new Map([
  ["concurrent starts of one id on two connections start it once", ONE_CONNECTION],
  ["several connections expire the same runs, and each run is deleted once", ONE_CONNECTION],
  ["no message is lost when a start and messages race for one id", ONE_CONNECTION],
  ["a committed write is visible to a connection opened later", "a database in memory is gone when it is closed"],
  ["two connections that claim at the same time share the turns without overlap", ONE_CONNECTION],
  ["two connections that claim at the same time share the items without overlap", ONE_CONNECTION],
  ["a timer fires once when two connections poll at the same time", ONE_CONNECTION],
  ["a lease is taken over once when two connections reap at the same time", ONE_CONNECTION],
  ["suspects are spread over workers that claim at the same time", ONE_CONNECTION],
  ["a time that two connections fire at once is fired once", ONE_CONNECTION],
  ["a queue leases at most as many items at once as its concurrency, across workers", ONE_CONNECTION],
  ["a singleton start returns the live run with its key, for every caller", ONE_CONNECTION],
  ["of 100 concurrent commits of one checkpoint one succeeds, and 99 are already committed", ONE_CONNECTION],
  ["when several connections bring a node's arrivals at the same time, one of them queues it", ONE_CONNECTION],
  ["of several sequencers one appends each record", ONE_CONNECTION],
  ["several sweeps at the same time note each run once", ONE_CONNECTION],
  ["a process notes ends from the heartbeat on that follows the switch of another", ONE_CONNECTION],
  ["of several connections that reserve a key at once, one gets it", ONE_CONNECTION],
  ["payloads that repeat long texts are returned byte for byte, over every connection", ONE_CONNECTION],
  ["a connection notices that another one has written", ONE_CONNECTION],
  ["a connection opened after the wall clock was set back continues from the stored time", ONE_CONNECTION],
]);

test("store cases have different names", () => {
  const names = storeCases.map((storeCase) => storeCase.name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test("every skip names a case and gives a reason", () => {
  const names = new Set(storeCases.map((storeCase) => storeCase.name));
  expect([...MEMORY_SKIPS.keys()].filter((name) => !names.has(name))).toEqual([]);
  expect([...MEMORY_SKIPS.values()].filter((reason) => reason.trim() === "")).toEqual([]);
});

describe("SQLite in memory", () => {
  for (const { name, run } of storeCases) {
    const reason = MEMORY_SKIPS.get(name);
    test(name, async (context) => {
      if (reason !== undefined) return context.skip(reason);
      await using fixture = createSqliteFixture({ memory: true });
      await run(fixture);
    });
  }
});
