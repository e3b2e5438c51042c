// Cancel children: sends a cancel to the live children of a run that ends before them.

import { invariant } from "../../base/index.ts";
import type { RunNumber } from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import type { Tx } from "./statements.ts";

/** Returns the children that got the message. */
export function cancelChildren(tx: Tx, run: RunNumber, data: string): readonly RunNumber[] {
  const { sql } = tx;
  const notified: RunNumber[] = [];
  const row = sql.rootOf.get(run) as { root: number } | undefined;
  invariant(row !== undefined, "A run that cancels its children must have a row.");
  for (const child of sql.liveChildren.all(row.root, run) as unknown as { run: number }[])
    if (appendToInbox(tx, child.run, { type: "CancelRequested", target: "", data })) notified.push(child.run);
  return notified;
}
