// Cancel children: sends a cancel to the live children of a run that ends before them.

import { invariant } from "../../base/index.ts";
import { hasEnded, type RunNumber } from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import type { Tx } from "./transaction.ts";

const ROOT = ["root"] as const;
const CHILD = ["run", "status"] as const;

/** Returns the children that got the message. */
export function cancelChildren(tx: Tx, run: RunNumber, data: string): readonly RunNumber[] {
  const { rows } = tx;
  const notified: RunNumber[] = [];
  const row = rows.get("runs", [run], ROOT);
  invariant(row !== undefined, "A run that cancels its children must have a row.");
  for (const child of rows.select("runs_by_root", [row.root], CHILD, { also: { parent: run } }))
    if (!hasEnded(child.status) && appendToInbox(tx, child.run, { type: "CancelRequested", target: "", data }))
      notified.push(child.run);
  return notified;
}
