// Run holders: which worker holds a run and when it last committed; and the history of the store. For people.

import {
  HISTORY_END,
  HISTORY_PREFIX,
  historyOf,
  MAX_HELD_ITEMS,
  type HistoryEvent,
  type RunHolder,
  type RunNumber,
  QueueItemState,
} from "../../kernel/index.ts";
import type { Condition, Query } from "./query.ts";
import type { Reader } from "./reader.ts";
import { equal, lookup } from "./reads.ts";
import type { RowOf } from "../rows/tables.ts";

const WHAT = "Reading who holds runs";
/** Runs per two round trips. */
const AT_ONCE = 200;

export async function readHolders(reader: Reader, runs: readonly RunNumber[]): Promise<readonly RunHolder[]> {
  const found = new Map<RunNumber, RunHolder>();
  const asked = [...new Set(runs)];
  for (let from = 0; from < asked.length; from += AT_ONCE)
    for (const holder of await readSome(reader, asked.slice(from, from + AT_ONCE))) found.set(holder.run, holder);
  return runs.flatMap((run) => found.get(run) ?? []);
}

async function readSome(reader: Reader, runs: readonly RunNumber[]): Promise<readonly RunHolder[]> {
  const keys = runs.map((run) => [run]);
  const answers = await reader.read(WHAT, [lookup("runs", ["run"], keys), heldItems(runs)]);
  const [rows, items] = answers as unknown as [RowOf<"runs">[], RowOf<"queue">[]];
  const times = await reader.read(WHAT, rows.map(timeOfHead));
  const itemsOf = Map.groupBy(items, ({ run }) => run);
  return rows.map(({ run, turn_worker: worker }, index) => ({
    run,
    worker: worker ?? undefined,
    committedAt: (times[index]?.[0]?.["most"] as number | null) ?? undefined,
    items: (itemsOf.get(run) ?? []).slice(0, MAX_HELD_ITEMS).map((row) => ({ item: row.item, worker: row.worker! })),
  }));
}

function heldItems(runs: readonly RunNumber[]): Query {
  const where: Condition[] = [
    { column: "state", is: "=", value: QueueItemState.leased, fixed: true },
    { column: "worker", is: "not null" },
    { column: "run", is: "in", values: runs },
  ];
  return { kind: "select", table: "queue", where, order: [["item", "asc"]], lock: "none" };
}

/** A count instead of the entry: the entry may be large, or encrypted with a missing key. */
function timeOfHead({ run, head }: RowOf<"runs">): Query {
  return { kind: "count", table: "journal", where: [equal("run", run), equal("seq", head)], most: "at" };
}

export async function readHistory(reader: Reader): Promise<readonly HistoryEvent[]> {
  const rows = await reader.rows("Reading the store's history", {
    kind: "select",
    table: "meta",
    where: [
      { column: "key", is: ">=", value: HISTORY_PREFIX },
      { column: "key", is: "<", value: HISTORY_END },
    ],
    order: [["key", "asc"]],
    lock: "none",
  });
  return historyOf(rows);
}
