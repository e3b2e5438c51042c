// Exactly once: the constraints of the database, and steps that are committed a second time.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine, END, graph, last, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { chainAfter, markOf, type TurnWrite } from "../../src/kernel/index.ts";
import { startGraph, step } from "../../src/testing/store-cases/checkpoints.ts";
import { commitTurn, registerWorker, turnWrite } from "../../src/testing/store-cases/store-actions.ts";
import type { AnyWrite } from "../engine/world.ts";
import { rejection } from "../engine/world.ts";
import { openStores } from "./graph-stores.ts";

const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "full" } as const;

const counts = graph("counts", { state: { n: last(0) } })
  .node("add", async (_ctx, state) => ({ n: state.n + 1 }))
  .edge(START, "add")
  .edge("add", END, (state) => state.n === 6)
  .edge("add", "add");

test("unique idempotency key and unique (run, step): the database rejects a second row with either", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [counts] });
  await (await engine.start(counts, {}, { id: "r" })).result();
  const db = new DatabaseSync(stores.path);
  const copy = (columns: string): void =>
    db.exec(`insert into checkpoints (run, step, seq, chain, key) select ${columns} from checkpoints where step = 3`);
  expect(() => copy("run, 99, seq, chain, key")).toThrow(/UNIQUE constraint failed: checkpoints\.key/);
  expect(() => copy("run + 1, step, seq, chain, key")).toThrow(/UNIQUE constraint failed: checkpoints\.key/);
  expect(() => copy("run, step, seq, chain, 'another'")).toThrow(/UNIQUE constraint failed: checkpoints\.run/);
  db.close();
  for (const { key } of stores.sql<{ key: string }>("select key from checkpoints"))
    expect(key).toMatch(/^sha256:[0-9a-f]{64}$/);
});

test("the key is written before anything else of the commit", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [counts] });
  await engine.start(counts, { n: 5 }, { id: "first" });
  await engine.get(counts, "first").result();
  // Fails a commit whose entries or head are in when its key comes.
  stores.sql(`create trigger late before insert on checkpoints
    when exists (select 1 from journal where run = new.run and seq >= new.seq)
      or exists (select 1 from runs where run = new.run and head >= new.seq)
    begin select raise(abort, 'something was written before the key'); end`);
  expect(await (await engine.start(counts, {}, { id: "r" })).result()).toEqual({ n: 6 });
});

test("crash recovery: after steps 1 to 5, step 5 is recognized as committed, and step 6 is accepted", async () => {
  using stores = openStores();
  const store = await stores.source["~open"](MACHINE);
  const worker = await registerWorker(store);
  let held = await startGraph(store, worker, "r");
  let before = held;
  for (let number = 1; number <= 5; number += 1) {
    before = held;
    held = await commitTurn(store, held, step(held, number));
  }
  const contents = stores.sql("select * from checkpoints");
  expect(await store.write([turnWrite(store, before, step(before, 5))])).toEqual([{ status: "already_committed" }]);
  expect(stores.sql("select * from checkpoints")).toEqual(contents);
  await commitTurn(store, held, step(held, 6));
  expect(stores.sql<{ step: number }>("select step from checkpoints order by step").map((row) => row.step)).toEqual([
    0, 1, 2, 3, 4, 5, 6,
  ]);
  expect(await store.check()).toEqual([]);
  await store.close();
});

/** The same turn with another key: as if the code were not deterministic and another worker had been first. */
function otherwise(turn: TurnWrite, chainBefore: string): TurnWrite {
  const key = `sha256:${"0".repeat(64)}`;
  const last = turn.entries.findLastIndex(({ type }) => type === "StepCommitted");
  let chain = chainBefore;
  const entries = turn.entries.slice(0, last + 1).map((entry, index) => {
    const data = index === last ? JSON.stringify({ ...(JSON.parse(entry.data) as object), key }) : entry.data;
    chain = chainAfter(chain, entry.type, entry.command, data);
    return { ...entry, data, mark: markOf(chain) };
  });
  const checkpoints = turn.checkpoints?.map((one) => ({ ...one, key, chain })) ?? [];
  return { ...turn, entries, chain, checkpoints, then: "hold" };
}

test("same step, different state: the run stops with another error than for a duplicate, and the first checkpoint is intact", async () => {
  let first: readonly unknown[] | undefined;
  using stores = openStores(async (writes, apply) => {
    const turn = writes.find(isStepTwo);
    if (turn === undefined || first !== undefined) return apply();
    // Somebody with the same token commits something else for this step.
    const { chain } = (await stores.store.findRun("r"))!;
    expect(await stores.store.write([otherwise(turn, chain)])).toMatchObject([{ status: "committed" }]);
    first = stores.sql("select * from checkpoints order by step");
    return apply();
  });
  await using engine = await createTestEngine({ store: stores.source, definitions: [counts] });
  const run = await engine.start(counts, {}, { id: "r" });
  const error = await rejection(run.result());
  expect(error).toMatchObject({ code: "DETERMINISM_VIOLATION" });
  expect(error.message).toMatch(
    /the journal recorded checkpoint key 'sha256:0{64}'; the commit has key 'sha256:[0-9a-f]{64}' \(at step 2\)/,
  );
  expect((await run.info()).status).toBe("determinism_violation");
  expect(stores.sql("select * from checkpoints order by step")).toEqual(first);
});

function isStepTwo(write: AnyWrite): write is TurnWrite {
  return write.write === "turn" && write.checkpoints?.some((one) => one.step === 2) === true;
}

test("a run started again under the id of a pruned one has the same keys, also before the pruned rows are swept", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [counts] });
  await (await engine.start(counts, {}, { id: "r" })).result();
  const keys = stores.sql("select step, key from checkpoints order by step");
  // As a prune leaves it that was killed between forgetting runs and removing their rows.
  stores.sql("insert into leftovers (run) select run from runs");
  stores.sql("insert into meta (key, value) select 'highest run', cast(max(run) as text) from runs");
  stores.sql("delete from runs");
  expect(await (await engine.start(counts, {}, { id: "r" })).result()).toEqual({ n: 6 });
  const run = stores.sql<{ run: number }>("select run from runs")[0]!;
  expect(stores.sql(`select step, key from checkpoints where run = ${run.run} order by step`)).toEqual(keys);
});
