// Tell children: live children of a run that ends without them are asked to stop.

import type { RunNumber } from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import type { Tx } from "./statements.ts";

/** Answers those that were told. */
export function tellChildren(tx: Tx, run: RunNumber, data: string): readonly RunNumber[] {
  const { sql } = tx;
  const told: RunNumber[] = [];
  const { root } = sql.rootOf.get(run) as { root: number };
  for (const child of sql.liveChildren.all(root, run) as unknown as { run: number }[])
    if (arrive(tx, child.run, { type: "CancelRequested", target: "", data })) told.push(child.run);
  return told;
}
