// Describe: the facts about a store that `reprise doctor` and `reprise info` show (../rules/describe.ts).

import type { DestinationInfo, RunNumber, RunStatus, StoreInfo } from "../../kernel/index.ts";
import { countWork } from "../rules/describe.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { rowSession } from "./row-session.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import { codecNames } from "./sqlite-payload-cipher.ts";
import type { SqliteSession } from "./sqlite-session.ts";
import { pragma } from "./version.ts";

/** How many runs one statement counts: some milliseconds. */
const COUNT_WINDOW = 20_000;

export async function describe(session: SqliteSession): Promise<StoreInfo> {
  const { path, durability } = session.options;
  const work = await countWork(rowSession(session), {
    countRuns: () => countRuns(session),
    countMessages: () =>
      session.read("Counting messages", (sql) =>
        sql.countOutgoing.all().map((row) => ({ ...row }) as unknown as DestinationInfo),
      ),
  });
  return session.read("Describing the store", () => {
    const { db } = session.connection;
    return {
      kind: "sqlite",
      location: path,
      schemaVersion: SCHEMA_VERSION,
      durability,
      bytes: Number(pragma(db, "page_count")) * Number(pragma(db, "page_size")),
      codecs: codecNames(db),
      ...work,
    };
  });
}

async function countRuns(session: SqliteSession): Promise<StoreInfo["runs"]> {
  const what = "Counting runs";
  const runs: Partial<Record<RunStatus, number>> = {};
  for (let from: RunNumber | undefined = 0; from !== undefined;) {
    const first: RunNumber = from;
    const next: RunNumber | undefined = await session.read(what, (sql) => {
      const upTo = (sql.runsFrom.get(first, COUNT_WINDOW) as { run: RunNumber } | undefined)?.run;
      for (const row of sql.countStatuses.all(first, upTo ?? Number.MAX_SAFE_INTEGER)) {
        const { status, count } = row as { status: RunStatus; count: number };
        runs[status] = (runs[status] ?? 0) + count;
      }
      return upTo;
    });
    from = next;
    await yieldToEventLoop(session.options);
  }
  return runs;
}
