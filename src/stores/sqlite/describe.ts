// Describe: the facts about a store that `reprise doctor` and `reprise info` show.

import type { RunNumber, RunStatus, StoreInfo } from "../../kernel/index.ts";
import { outboxInfo } from "../rules/outbox.ts";
import { listWorkers } from "../rules/worker-leases.ts";
import { highestRun, numberOf } from "./prune.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { codecNames } from "./sqlite-payload-cipher.ts";
import type { SqliteSession } from "./sqlite-session.ts";
import { pragma } from "./version.ts";

/** How many runs one statement counts: some milliseconds. */
const COUNT_WINDOW = 20_000;

export async function describe(session: SqliteSession): Promise<StoreInfo> {
  const { path, durability } = session.options;
  const runs: Partial<Record<RunStatus, number>> = {};
  const highest = await highestRun(session);
  for (let from = 0, upTo: RunNumber; from <= highest; from = upTo) {
    upTo = await session.read("Counting runs", (sql) => numberOf(sql.runsFrom.get(from, COUNT_WINDOW)) ?? highest + 1);
    const counts = await session.read("Counting runs", (sql) => sql.countStatuses.all(from, upTo));
    for (const { status, count } of counts as unknown as { status: RunStatus; count: number }[])
      runs[status] = (runs[status] ?? 0) + count;
    await yieldToEventLoop(session.options);
  }
  return session.read("Describing the store", (sql, rows) => {
    const { db } = session.connection;
    const items = sql.countItems.get() as { ready: number; leased: number; delayed: number };
    return {
      kind: "sqlite",
      location: path,
      schemaVersion: SCHEMA_VERSION,
      durability,
      bytes: Number(pragma(db, "page_count")) * Number(pragma(db, "page_size")),
      codecs: codecNames(db),
      runs,
      workers: listWorkers(rows),
      items: { ...items },
      outbox: outboxInfo(rows),
    };
  });
}
