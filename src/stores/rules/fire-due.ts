// Fire due: turns due timers into messages, makes delayed items ready and starts delayed runs, oldest first.

import type { EpochMs } from "../../base/index.ts";
import type { EntryType, FireDueOutcome, FireDueWrite, RunNumber } from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import { startDelayed } from "./pending-start.ts";
import type { Statements, Tx } from "./statements.ts";

interface DueItem {
  readonly run: number;
  readonly item: string;
  readonly kind: string;
  readonly name: string;
}

export function applyFireDue(tx: Tx, write: FireDueWrite): FireDueOutcome {
  const { sql, now } = tx;
  const runs = new Set<RunNumber>();
  let ready = 0;
  for (const { run, item, kind, name } of sql.dueItems.all(now, write.limit) as unknown as DueItem[]) {
    if (kind === "timer") {
      sql.deleteItem.run(run, item);
      if (appendToInbox(tx, run, { type: name as EntryType, target: item, data: "{}" })) runs.add(run);
    } else if (kind === "start") {
      if (startDelayed(tx, run)) runs.add(run);
      else ready += 1;
    } else {
      sql.markItemReady.run(run, item);
      ready += 1;
    }
  }
  return { runs: [...runs], ready, nextAt: nextDue(sql) };
}

export function nextDue(sql: Statements): EpochMs | undefined {
  return (sql.nextDue.get() as { at: number | null }).at ?? undefined;
}
