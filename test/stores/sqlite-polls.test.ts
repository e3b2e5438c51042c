// Polls on SQLite that find nothing: they read without a transaction, which would wait for other processes (sqlite-store.S3).

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import type { AheadClaim, ClaimItemsOutcome, Store } from "../../src/kernel/index.ts";
import {
  claimItems,
  endItemWrite,
  newTokens,
  registerWorker,
  startWithTasks,
} from "../../src/testing/store-cases/store-actions.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";

const slot = { queue: "mail" };

async function pollAhead(store: Store, worker: number): Promise<ClaimItemsOutcome> {
  const ahead: readonly AheadClaim[] = [{ queue: "mail", count: 2 }];
  return (
    await store.write([{ write: "claim-items", worker, tokens: newTokens(3), names: ["charge"], ahead } as const])
  )[0];
}

test("a worker without leased slots polls for items ahead of slots while another process writes", async () => {
  let file = "";
  await using fixture = createSqliteFixture({ wrap: (store, _clock, path) => ((file = path), store) });
  const store = await fixture.open();
  const worker = await registerWorker(store);
  await store.write([{ write: "declare-queue", name: "mail", limits: { concurrency: 1 } }]);
  await startWithTasks(store, worker, "order-1", 1, () => ({ slot }));
  const [item] = await claimItems(store, worker);
  await store.write([{ ...endItemWrite(item!), slot }]);
  using other = new DatabaseSync(file);
  other.exec("begin immediate");
  const idle = { items: [], nextAt: undefined, held: false, slots: [] };
  expect(await pollAhead(store, worker)).toEqual(idle);
  other.exec("rollback");
  await store.close();
});
