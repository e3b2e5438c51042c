// Storage: grows with the changes, and reading any step is bounded, measured in bytes of the file and in reads.

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { append, createEngine, END, graph, last, merge, START } from "reprise";
import { pathInfo, type Path } from "../../src/stores/rows/indexes.ts";
import { selectSql, type SelectShape } from "../../src/stores/sqlite/row-sql.ts";
import { collect } from "../engine/world.ts";
import { countingStore } from "./counting-store.ts";
import { openStores, type GraphStores } from "./graph-stores.ts";

const STEPS = 1_000;
const STATE = 100_000;
const CHANGE = 100;

/** A thousand keys of a hundred characters; every step changes one of them. */
const documents = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`k${n}`, "x".repeat(92)]));
const edits = graph("edits", {
  state: { n: last(0), document: merge<Record<string, string>>(documents) },
  maxSteps: STEPS + 1,
  output: ({ n }) => n,
})
  .node("edit", async (_ctx, { n }) => ({
    n: n + 1,
    document: { [`k${(n * 7) % 1_000}`]: `${n}`.padEnd(CHANGE - 10, "y") },
  }))
  .edge(START, "edit")
  .edge("edit", END, ({ n }) => n >= STEPS)
  .edge("edit", "edit");

/** All that the file holds, what is still in its log included. */
function bytesOf({ path, sql }: GraphStores): number {
  sql("pragma wal_checkpoint(truncate)");
  return statSync(path).size;
}

test("1,000 steps over a 100 KB state that each change 100 bytes stay within a few MB, and reading any step is bounded", async () => {
  using stores = openStores();
  const counting = countingStore(stores.source);
  await using engine = await createEngine({ store: counting.source, definitions: [edits] });
  const run = await engine.start(edits, {}, { id: "r" });
  expect(await run.result()).toBe(STEPS);
  const state = JSON.stringify(await run.stateAt(0)).length;
  expect(state).toBeGreaterThan(STATE);
  const bytes = bytesOf(stores);
  // Whole states at every step would be 100 MB.
  expect(bytes).toBeLessThan(6_000_000);
  for (const step of [0, 1, 2, 137, 499, 500, 501, 777, 998, 999, 1_000]) {
    counting.reset();
    const { n, document } = await run.stateAt(step);
    expect(n).toBe(step);
    if (step > 0) expect(document[`k${((step - 1) * 7) % 1_000}`]).toContain(`${step - 1}yy`);
    // CP3: the nearest whole state, and since then no more than it is long, with a step to spare.
    expect(counting.characters).toBeLessThan(2 * state + 16_384 + 1_000);
    expect(counting.rows).toBeLessThan(400);
  }
  counting.reset();
  const fork = await run.fork({ step: 900, id: "f" });
  expect(await fork.result()).toBe(STEPS);
  // The whole state once in its entry and once in its row, and then what its hundred steps changed.
  expect(bytesOf(stores) - bytes).toBeLessThan(2 * state + 200_000);
  expect(await stores.store.check()).toEqual([]);
}, 120_000);

test("a growing list is stored by what is appended, and a checkpoint decodes its state only on access", async () => {
  const talks = graph("talks", { state: { messages: append<string>() }, maxSteps: 2_000, output: () => "done" })
    .node("say", async (ctx) => ({ messages: [`${ctx.step}`.padEnd(CHANGE, ".")] }))
    .edge(START, "say")
    .edge("say", END, ({ messages }) => messages.length >= STEPS)
    .edge("say", "say");
  using stores = openStores();
  const counting = countingStore(stores.source);
  await using engine = await createEngine({ store: counting.source, definitions: [talks] });
  const run = await engine.start(talks, {}, { id: "r" });
  await run.result();
  expect(bytesOf(stores)).toBeLessThan(4_000_000);
  counting.reset();
  const all = await collect(run.checkpoints());
  expect(all.length).toBe(STEPS + 1);
  // Every step's entry once, and no whole state at all.
  expect(counting.steps).toEqual(Array.from({ length: STEPS + 1 }, (_, step) => step));
  expect(counting.characters).toBeLessThan(STEPS * 1_000);
  expect(all[500]?.state.messages.length).toBe(500);
}, 120_000);

test("label and latest: at 100,000 checkpoints both are found by an index, and nothing is scanned", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [edits] });
  await engine.start(edits, { n: STEPS - 1 }, { id: "r" });
  await engine.get(edits, "r").result();
  const { run } = (await stores.store.findRun("r"))!;
  const db = new DatabaseSync(stores.path);
  db.exec(`with recursive steps (step) as (select 10 union all select step + 1 from steps where step < 100009)
    insert into checkpoints (run, step, seq, chain, key, label, state)
    select ${run}, step, step, 'c', 'key ' || step, case when step % 100 = 0 then 'l' || (step % 700) end, null from steps`);
  const plan = (path: Path, prefix: number, shape: Partial<SelectShape>): string => {
    const all = { prefix, after: false, before: false, upTo: false, also: [], backwards: true, limit: true, ...shape };
    const sql = selectSql(pathInfo(path), ["step"], all, false);
    return (db.prepare(`explain query plan ${sql}`).all() as { detail: string }[])
      .map(({ detail }) => detail)
      .join("\n");
  };
  expect(plan("checkpoints_label", 2, { upTo: true })).toMatch(
    /^SEARCH checkpoints USING (COVERING )?INDEX checkpoints_label \(run=\? AND label=\? AND step<\?\)$/,
  );
  expect(plan("checkpoints", 1, { upTo: true })).toMatch(
    /^SEARCH checkpoints USING (COVERING )?INDEX sqlite_autoindex_checkpoints_1 \(run=\? AND step<\?\)$/,
  );
  expect(plan("checkpoints_whole", 1, { upTo: true })).toMatch(
    /^SEARCH checkpoints USING (COVERING )?INDEX checkpoints_whole \(run=\? AND step<\?\)$/,
  );
  expect(plan("checkpoints_key", 1, { limit: false })).toBe("SEARCH checkpoints USING INDEX checkpoints_key (key=?)");
  expect(plan("checkpoints", 1, { after: true, upTo: true, backwards: false })).toMatch(
    /^SEARCH checkpoints USING (COVERING )?INDEX sqlite_autoindex_checkpoints_1 \(run=\? AND step>\? AND step<\?\)$/,
  );
  db.close();
  expect((await stores.store.findCheckpoint(run, Number.MAX_SAFE_INTEGER, false))?.step).toBe(100_009);
  expect((await stores.store.findLabeledCheckpoint(run, "l100", Number.MAX_SAFE_INTEGER))?.step).toBe(99_500);
  expect((await stores.store.findLabeledCheckpoint(run, "l100", 50_000))?.step).toBe(49_800);
});
