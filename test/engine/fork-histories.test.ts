// The histories of workflow forks: damage in an origin, and what another process takes a fork for.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine, task, workflow, type Engine } from "reprise";
import { command, TemporaryFolder } from "../cli/cli-process.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const price = task("price", async (_, item: string) => item.length);
const order = workflow("order", async (ctx, items: string[]) => {
  let total = 0;
  for (const item of items) total += await ctx.task(price, item);
  return total;
});
const ITEMS = ["a", "bb", "ccc", "dddd"];

/** A, its fork B, and a fork C of B whose place is in the entries that B shares with A. */
async function withForks(
  folder: TemporaryFolder,
  work: (engine: Engine) => Promise<void> = async () => {},
): Promise<string> {
  const store = `sqlite:${folder.file("s.db")}`;
  await using engine = await createEngine({ store, definitions: [order, price], logger: SILENT });
  const a = await engine.start(order, ITEMS, { id: "A" });
  await a.result();
  const b = await a.fork({ at: "Task(3)", id: "B" });
  await b.result();
  const c = await b.fork({ at: "Task(2)", id: "C" });
  await c.result();
  await work(engine);
  return store;
}

test("damage in the entries that a fork of a fork shares with the first origin is found", async () => {
  using folder = new TemporaryFolder();
  const store = await withForks(folder);
  const db = new DatabaseSync(folder.file("s.db"));
  const ofA = "run = (select run from runs where id = 'A') and seq = 2";
  const { data } = db.prepare(`select cast(data as text) data from journal where ${ofA}`).get() as { data: string };
  db.prepare(`update journal set data = ? where ${ofA}`).run(Buffer.from(data.replace('"a"', '"z"')));
  db.close();
  await using engine = await createEngine({ store, definitions: [order, price], logger: SILENT });
  for (const id of ["A", "B", "C"])
    expect(await engine.get(order, id).verify()).toMatchObject({ status: "mismatch", where: "entry 2" });
});

test("the id of a fork is not that of a run with the same input", async () => {
  using folder = new TemporaryFolder();
  await withForks(folder, async (engine) => {
    await expect(engine.start(order, ITEMS, { id: "B" })).rejects.toMatchObject({
      code: "START_CONFLICT",
      message: expect.stringContaining("exists as a fork from Task(3) of run A"),
    });
  });
});

test("pull brings the runs that a workflow was forked from", async () => {
  using folder = new TemporaryFolder();
  const store = await withForks(folder);
  const home = ["--home", folder.file("home")];
  expect(await command(["pull", store, "C", "--as", "m", ...home])).toMatchObject({ code: 0 });
  for (const id of ["A", "B", "C"]) expect(await command(["journal", `m/${id}`, ...home])).toMatchObject({ code: 0 });
});
