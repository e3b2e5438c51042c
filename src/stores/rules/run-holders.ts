// Run holders: the workers that hold a run, the time of its last commit, and the history of the store. For people.

import type { EpochMs } from "../../base/index.ts";
import {
  HISTORY_END,
  HISTORY_PREFIX,
  historyOf,
  MAX_HELD_ITEMS,
  QueueItemState,
  type HistoryEvent,
  type RunHolder,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Rows, Span } from "../rows/rows.ts";

const HOLDER = ["turn_worker", "head"] as const;
const ITEM = ["item", "worker"] as const;
const HELD = {
  also: { state: QueueItemState.leased, worker: { not: null } },
  limit: MAX_HELD_ITEMS,
} as const satisfies Span<"queue">;
const EVENT = ["key", "value"] as const;

/** `timeOf`: the time of an entry, which each store reads without the entry's data: that may be large. */
export function readHolders(
  rows: Rows,
  runs: readonly RunNumber[],
  timeOf: (run: RunNumber, seq: number) => EpochMs | undefined,
): readonly RunHolder[] {
  return runs.flatMap((run): RunHolder[] => {
    const row = rows.get("runs", [run], HOLDER);
    const items = rows.select("queue", [run], ITEM, HELD);
    if (row === undefined) return [];
    return [
      {
        run,
        worker: row.turn_worker ?? undefined,
        committedAt: timeOf(run, row.head),
        items: items.flatMap(({ item, worker }) => (worker === null ? [] : [{ item, worker }])),
      },
    ];
  });
}

export function readHistory(rows: Rows): readonly HistoryEvent[] {
  return historyOf(rows.select("meta", [], EVENT, { after: HISTORY_PREFIX, before: HISTORY_END }));
}
