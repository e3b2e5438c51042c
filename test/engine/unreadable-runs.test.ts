// Runs whose journal this version cannot read, because a later version wrote an entry of a type that it does not know.

import { expect, test } from "vitest";
import { workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { commitTurn, registerWorker, startHeld } from "../../src/testing/store-cases/store-actions.ts";
import { macrotask, storeAround, until } from "./world.ts";

test("a worker returns the turn of a run that it cannot read after a pause, and claims it no more than once per second", async () => {
  let returned = 0;
  const source = storeAround((writes, apply) => {
    returned += writes.filter(({ write }) => write === "return-turn").length;
    return apply();
  });
  const errors: string[] = [];
  const logger = { info: () => {}, warn: () => {}, error: (message: string) => void errors.push(message) };
  const checkout = workflow("checkout", (ctx) => ctx.sleep("1 day"));
  await using engine = await createTestEngine({ store: source, definitions: [checkout], logger });
  const held = await startHeld(source.store, await registerWorker(source.store), "order-1");
  await commitTurn(source.store, held, { entries: [["OfALaterVersion" as never, "", "{}"]], then: "release" });
  await engine.get(checkout, "order-1").cancel();
  await until(() => errors.length > 0);
  await macrotask();
  expect(errors[0]).toContain("unexpected type, OfALaterVersion");
  expect(returned).toBe(0);
  for (const second of [1, 2, 3]) {
    await engine.clock.advance("1 second");
    expect(returned).toBe(second);
  }
});
