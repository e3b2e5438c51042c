// Fire due: turns due timers into messages, makes delayed items ready and starts delayed runs, oldest first.

import type { EpochMs } from "../../base/index.ts";
import {
  QueueItemState,
  type EntryType,
  type FireDueOutcome,
  type FireDueWrite,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { appendToInbox } from "./inbox.ts";
import { startDelayed } from "./pending-start.ts";
import type { Tx } from "./transaction.ts";

const DUE = ["run", "item", "kind", "name", "available_at"] as const;
const AVAILABLE = ["available_at"] as const;
const PEEK = { peek: true } as const;

export function applyFireDue(tx: Tx, { limit }: FireDueWrite): FireDueOutcome {
  const { rows, now } = tx;
  const runs = new Set<RunNumber>();
  let ready = 0;
  // One more than are fired: it is the next one.
  const due = rows.select("queue_delayed", [], DUE, { upTo: now, limit: limit + 1, peek: true });
  for (const { run, item, kind, name } of due.slice(0, limit)) {
    // The run's lock comes before its items' (remote.L1). An item that another worker has fired meanwhile is then not selected.
    rows.own("runs", [run]);
    rows.own("queue", [run, item]);
    if (kind === "timer") {
      rows.drop("queue", [run, item]);
      if (appendToInbox(tx, run, { type: name as EntryType, target: item, data: "{}" })) runs.add(run);
    } else if (kind === "start") {
      if (startDelayed(tx, run)) runs.add(run);
      else ready += 1;
    } else {
      rows.set("queue", [run, item], { state: QueueItemState.ready });
      ready += 1;
    }
  }
  return { runs: [...runs], ready, nextAt: nextAfter(tx, due.length > limit) };
}

/** When the next item is due after the firing, which may have deleted further items. */
function nextAfter({ rows, now }: Tx, isMoreDue: boolean): EpochMs | undefined {
  const due = isMoreDue ? rows.first("queue_delayed", [], DUE, { upTo: now, peek: true }) : undefined;
  return (due ?? rows.first("queue_delayed", [], AVAILABLE, { after: now, peek: true }))?.available_at;
}

/** When the next delayed item is due. */
export function nextDue(rows: Rows): EpochMs | undefined {
  return rows.first("queue_delayed", [], AVAILABLE, PEEK)?.available_at;
}
