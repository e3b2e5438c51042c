// Checkpoints: committed once, together with their step, and derived from the journal.

import { expect, test } from "vitest";
import { append, createEngine, END, graph, last, merge, promise, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rebuildCheckpoints, snapshotText, type NewCheckpoint } from "../../src/kernel/index.ts";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { registerWorker, startHeld, turnWrite } from "../../src/testing/store-cases/store-actions.ts";
import { rejection } from "../engine/world.ts";
import { openStores, type GraphStores } from "./graph-stores.ts";

const grows = graph("grows", {
  state: { log: append<string>(), big: last(""), facts: merge<Record<string, number>>({}), n: last(0) },
  ports: { go: promise<number>(), unused: promise() },
})
  .node("count", async (ctx, state) => {
    if (state.n === 1) ctx.label("second");
    const added = await ctx.run("add", { n: state.n }, (_op, { n }) => n + 1);
    // Long enough to be kept whole now and then.
    return { n: added, log: [`at ${added}`], big: "x".repeat(5_000), facts: { [`k${added % 3}`]: added } };
  })
  .node("wait", async (ctx) => ({ n: await ctx.promise("go"), big: "b".repeat(30_000) }))
  .edge(START, "count")
  .edge("count", "wait", (state) => state.n === 5)
  .edge("count", END, (state) => state.n > 20)
  .edge("count", "count")
  .edge("wait", "count");

async function rowsOf({ store }: GraphStores, id: string): Promise<{ run: number; rows: NewCheckpoint[] }> {
  const { run } = (await store.findRun(id))!;
  const rows: NewCheckpoint[] = [];
  for (const { step } of await store.readCheckpoints(run, -1, 10_000)) {
    const [plain, whole] = await Promise.all([
      store.findCheckpoint(run, step, false),
      store.findCheckpoint(run, step, true),
    ]);
    rows.push(whole?.step === step ? whole : plain!);
  }
  return { run, rows };
}

test("dropped checkpoints are rebuilt from the journal, byte for byte", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [grows] });
  const run = await engine.start(grows, { log: ["first"] }, { id: "r" });
  await run.resolve("go", 10);
  await run.result();
  const { run: number, rows } = await rowsOf(stores, "r");
  expect(rows.length).toBeGreaterThan(15);
  expect(rows.filter(({ state }) => state !== undefined).length).toBeGreaterThan(1);
  expect(rows.find(({ label }) => label === "second")?.step).toBe(2);
  expect(await stores.store.check()).toEqual([]);
  stores.sql("delete from checkpoints");
  expect((await stores.store.check()).length).toBe(rows.length);
  expect(rebuildCheckpoints(await stores.store.readJournal(number, 0))).toEqual(rows);
});

test("doctor finds checkpoints that are missing, unexpected or changed", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [grows] });
  const run = await engine.start(grows, {}, { id: "r" });
  await run.resolve("go", 10);
  await run.result();
  const found = async (): Promise<string[]> => (await stores.store.check()).map(({ message }) => message);
  expect(await found()).toEqual([]);
  stores.sql("update checkpoints set key = 'sha256:00' where step = 3");
  expect(await found()).toEqual(["The checkpoint of step 3 has another key than the journal."]);
  stores.sql("delete from checkpoints where step = 3");
  expect(await found()).toEqual(["Step 3 is in the journal but has no checkpoint row."]);
  stores.sql("update checkpoints set state = cast('{}' as blob) where step = 0");
  expect((await found()).toSorted()).toEqual([
    "Step 3 is in the journal but has no checkpoint row.",
    "The checkpoint of step 0 has another state than the journal.",
  ]);
  stores.sql("insert into checkpoints select run, 3000, seq, chain, 'k', label, state from checkpoints where step = 4");
  stores.sql("insert into checkpoints select run, 3001, seq, chain, 'l', label, state from checkpoints where step = 4");
  expect(await found()).toEqual(
    expect.arrayContaining([
      "The checkpoint of step 3000 has no entry in the journal.",
      "The checkpoint of step 3001 has no entry in the journal.",
    ]),
  );
});

test("a run without checkpoints continues from its journal", async () => {
  using stores = openStores();
  await using engine = await createTestEngine({ store: stores.source, definitions: [grows] });
  const run = await engine.start(grows, {}, { id: "r" });
  await engine.clock.advance(0);
  stores.sql("delete from checkpoints");
  await engine.crash();
  await run.resolve("go", 20);
  expect((await run.result()).n).toBe(21);
});

const COMPONENTS = [
  ["the key", "before insert on checkpoints"],
  ["the state", "before insert on checkpoints when new.state is not null"],
  ["the frontier", "before insert on journal when new.type = 'StepCommitted'"],
  ["the result", "before insert on journal when new.type = 'NodeCompleted'"],
  ["recorded I/O", "before insert on journal when new.type = 'OperationCompleted'"],
  ["the run", "before update of head on runs"],
  ["a task", "before insert on queue"],
  ["a chunk", "before insert on chunks"],
  ["a message of the outbox", "before insert on outbox"],
  ["the commit itself", undefined],
] as const;

test.each(COMPONENTS)(
  "checkpoint atomicity: when %s cannot be written nothing of the step is, and a retry with the same key succeeds",
  async (_what, when) => {
    using stores = openStores();
    const store = await stores.source["~open"]({
      clock: systemClock,
      timers: systemTimers,
      random: systemRandom,
      durability: "full",
    });
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "r", { kind: "graph", definition: "agent" });
    const data = JSON.stringify({ delta: { set: { n: 1 } }, frontier: [], key: "sha256:1", label: "start", step: 0 });
    const write = turnWrite(store, held, {
      entries: [
        ["OperationCompleted", "Node(1.0)#0/Operation(0)"],
        ["NodeCompleted", "Node(1.0)"],
        ["TaskScheduled", "Node(2.0)#0/Task(0)"],
        ["MessageSent", "Node(1.0)#0/Message(0)", '{"destination":"mail","index":0}'],
        ["StepCommitted", "", data],
      ],
      items: [{ item: "Node(2.0)#0/Task(0)", kind: "task", name: "charge", priority: 0, seq: 4 }],
      chunks: [{ stream: "words", number: undefined, data: '"hi"' }],
      outgoing: [{ seq: 5, destination: "mail" }],
    });
    const state = snapshotText([], ['{"n":1}']);
    const commit = {
      ...write,
      checkpoints: [{ step: 0, seq: 6, chain: write.chain, key: "sha256:1", label: "start", state }],
    };
    const tables = ["runs", "journal", "queue", "inbox", "chunks", "outbox", "checkpoints"];
    const contents = () => tables.map((table) => stores.sql(`select * from ${table}`));
    const before = contents();
    if (when !== undefined) stores.sql(`create trigger broken ${when} begin select raise(abort, 'injected'); end`);
    else {
      // Checked when the transaction is committed, and not before.
      stores.sql("create table missing (id integer primary key)");
      stores.sql("create table pointing (id integer references missing deferrable initially deferred)");
      stores.sql("create trigger broken after insert on checkpoints begin insert into pointing values (7); end");
    }
    await expect(store.write([commit])).rejects.toThrow();
    expect(contents()).toEqual(before);
    stores.sql("drop trigger broken");
    expect((await store.write([commit]))[0]).toMatchObject({ status: "committed" });
    expect((await store.write([commit]))[0]).toMatchObject({ status: "already_committed" });
    expect(await store.check()).toEqual([]);
    await store.close();
  },
);

test("checkpoint atomicity: a state that cannot be encoded fails the run before anything of the step is written", async () => {
  const bad = graph("bad", {
    state: { f: { initial: 0 as unknown, reduce: () => () => 1, "~kind": "custom" as const } },
  })
    .node("odd", async () => ({ f: 1 }))
    .edge(START, "odd");
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [bad] });
  const run = await engine.start(bad, {}, { id: "r" });
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED" });
  expect(stores.sql("select step from checkpoints")).toEqual([{ step: 0 }]);
});

test("duplicate commit: a step that is committed again is recognized, the checkpoint stays, and the run continues with the next step", async () => {
  const statuses: string[] = [];
  const rows: unknown[] = [];
  using stores = openStores(async (writes, apply) => {
    const at = writes.findIndex((write) => write.write === "turn" && write.checkpoints?.some(({ step }) => step === 1));
    if (at === -1) return apply();
    const commit = async () => {
      const outcomes = await apply();
      statuses.push((outcomes[at] as { status: string }).status);
      rows.push(stores.sql("select * from checkpoints where step = 1"), stores.sql("select * from journal"));
      return outcomes;
    };
    // The answer to the first commit of step 1 is lost, and it is sent again.
    if (statuses.length === 0) await commit();
    return commit();
  });
  const ran: number[] = [];
  const g = graph("steps", { state: { n: last(0) } })
    .node("add", async (ctx, state) => {
      ran.push(ctx.step);
      return { n: state.n + 1 };
    })
    .edge(START, "add")
    .edge("add", END, (state) => state.n === 6)
    .edge("add", "add");
  await using engine = await createTestEngine({ store: stores.source, definitions: [g] });
  const run = await engine.start(g, {}, { id: "r" });
  for (let n = 0; n < 10; n += 1) await engine.clock.advance("10 s");
  expect(await run.result()).toEqual({ n: 6 });
  expect(statuses).toEqual(["committed", "already_committed"]);
  const [checkpoint, journal, checkpointAgain, journalAgain] = rows;
  expect(checkpoint).toHaveLength(1);
  expect([checkpointAgain, journalAgain]).toEqual([checkpoint, journal]);
  expect(ran).toEqual([1, 2, 3, 4, 5, 6]);
  expect(stores.sql<{ step: number }>("select step from checkpoints order by step").map(({ step }) => step)).toEqual([
    0, 1, 2, 3, 4, 5, 6,
  ]);
  expect(await stores.store.check()).toEqual([]);
});
