import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import type { Problem, Store } from "../../kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  startEnded,
  startHeld,
  startWaiting,
  startWithTasks,
} from "../../testing/store-cases/moves.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
let folder: string;
let path: string;
let store: Store;
let worker: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-check-"));
  path = join(folder, "store.db");
  store = await openSqliteStore({ ...machine, path });
  worker = await store.registerWorker("tester", 3_600_000);
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What somebody might do to the file by hand. */
async function afterDoing(sql: string): Promise<readonly Problem[]> {
  expect(await store.check()).toEqual([]);
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
  return store.check();
}

test("one damaged byte of a payload is found, and its run and entry are named", async () => {
  await startWaiting(store, worker, "healthy");
  const held = await startHeld(store, worker, "damaged");
  await commitTurn(store, held, {
    ...COMPLETES,
    entries: [
      ["StateSet", "State(0)", '{"value":"needle in the haystack"}'],
      ["RunCompleted", "", "{}"],
    ],
  });
  await store.close();
  const bytes = readFileSync(path);
  const at = bytes.indexOf("needle in the haystack");
  expect(at).toBeGreaterThan(0);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);

  store = await openSqliteStore({ ...machine, path });
  expect(await store.check()).toMatchObject([{ invariant: "I8 journal hash chain", run: "damaged", seq: 2 }]);
  expect((await store.readJournal(held.run, 0)).length).toBe(3);
});

test.each([
  ["a missing entry", "delete from journal where run = 1 and seq = 2", ["I7 journal gap-free", 2]],
  ["a journal cut short", "delete from journal where run = 1 and seq = 3", ["I7 journal gap-free", 3]],
  [
    "a changed type",
    "update journal set type = 'StateCleared' where run = 1 and seq = 2",
    ["I8 journal hash chain", 2],
  ],
  [
    "a changed chain",
    "update runs set chain = replace(chain, substr(chain, 9, 1), 'x') where run = 1",
    ["I8 journal hash chain", 3],
  ],
  ["a run without its end", "update runs set status = 'failed' where run = 1", ["I18 one ending", 3]],
  [
    "a turn due after the end",
    "update runs set turn_due = 1 where run = 1",
    ["I17 nothing alive after the end", undefined],
  ],
] as const)("%s is named", async (_, sql, [invariant, seq]) => {
  const held = await startHeld(store, worker, "order-1");
  await commitTurn(store, held, {
    ...COMPLETES,
    entries: [
      ["StateSet", "State(0)"],
      ["RunCompleted", ""],
    ],
  });
  expect(await afterDoing(sql)).toEqual(
    expect.arrayContaining([expect.objectContaining({ invariant, run: "order-1", seq })]),
  );
});

test.each([
  ["an item that vanished", "delete from queue", "I16 no stuck run"],
  [
    "a message nobody is woken for",
    "update runs set arrivals = 1; insert into inbox values (1, 1, 'TimerFired', 'x', x'7b7d')",
    "I16 no stuck run",
  ],
  ["a message that vanished", "update runs set arrivals = 1, turn_due = 1", "I23 inbound messages"],
  ["a lease of nobody", "update queue set state = 2, token = 't', worker = 99", "I14 leases have holders"],
  ["a token on a free item", "update queue set token = 't'", "I14 leases have holders"],
  [
    "rows of a run that does not exist",
    "update queue set run = 77; update runs set turn_due = 1",
    "I17 nothing alive after the end",
  ],
  [
    "a result recorded for a queued item",
    "update queue set item = 'Task(9)'; update journal set type = 'TaskCompleted', command = 'Task(9)' where seq = 2",
    "I1 no duplicate enqueue",
  ],
  ["an end that is not one", "update journal set type = 'RunFailed' where seq = 2", "I18 one ending"],
])("%s is named", async (_, sql, invariant) => {
  await startWithTasks(store, worker, "order-1", 1);
  expect((await afterDoing(sql)).map((problem) => problem.invariant)).toContain(invariant);
});

test("a command that ends twice, or before it began, is named", async () => {
  const held = await startHeld(store, worker, "order-1");
  await commitTurn(store, held, {
    entries: [
      ["TaskCompleted", "Task(0)"],
      ["OperationCompleted", "Operation(0)"],
      ["OperationFailed", "Operation(0)"],
    ],
  });
  expect(await store.check()).toMatchObject([
    { invariant: "I10 completions follow commands", run: "order-1", seq: 2 },
    { invariant: "I10 completions follow commands", run: "order-1", seq: 4 },
  ]);
});

test("a check sees one moment while others go on writing", async () => {
  for (let n = 0; n < 450; n++) await startEnded(store, worker, `before-${n}`);
  let more = 0;
  let written: Promise<unknown> = Promise.resolve();
  const problems = await store.check((_, total) => {
    expect(total).toBe(450);
    written = written.then(() => startEnded(store, worker, `during-${more++}`));
  });
  await written;
  expect(problems).toEqual([]);
  expect(more).toBeGreaterThan(1);
});
