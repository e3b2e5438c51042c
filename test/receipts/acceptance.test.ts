// Acceptance 30 on one machine: a known step is not executed again; another input is noticed; recomputing makes a new claim.

import { createEngine, task, workflow } from "reprise";
import { expect, test } from "vitest";
import { claimOf, createFolder } from "./claim-of.ts";

test("the same program with the same input executes nothing; another input differs, and recomputing it makes a new claim", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  let calls = 0;
  const price = task("price", { pure: "1" }, (_ctx, cents: number) => {
    calls += 1;
    return cents * 2;
  });
  const order = (factor: number) =>
    workflow("order", { determinism: "strict" }, async (ctx, cents: number) => ctx.task(price, cents * factor));
  {
    await using engine = await createEngine({ store, definitions: [order(1), price] });
    for (const id of ["order-1", "order-2"]) expect(await (await engine.start(order(1), 7, { id })).result()).toBe(14);
    const [first, second] = await Promise.all(["order-1", "order-2"].map((id) => engine.get(order(1), id)));
    expect(calls).toBe(1);
    expect(await claimOf(store, "order-1")).toBe(await claimOf(store, "order-2"));
    for (const run of [first!, second!]) expect(await run.verify()).toMatchObject({ status: "same" });
  }
  const before = await claimOf(store, "order-1");
  await using engine = await createEngine({ store, definitions: [order(10), price] });
  const run = engine.get(order(10), "order-1");
  expect(await run.verify()).toMatchObject({ status: "mismatch", differs: "input", where: "Task(0)" });
  // Recomputed as a run of its own: the old claim stays.
  const again = await run.fork({ at: "Task(0)" });
  expect(await again.result()).toBe(140);
  expect(calls).toBe(2);
  expect(await claimOf(store, again.id)).not.toBe(before);
  expect(await claimOf(store, "order-1")).toBe(before);
});
