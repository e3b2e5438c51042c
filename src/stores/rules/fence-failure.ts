// Fence failure: the outcome of a turn whose fence does not hold (rules.C2).

import type { TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import type { Tx } from "./transaction.ts";

const MARK = ["mark"] as const;
const FENCE = ["turn_token", "head", "chain"] as const;

/** The mark of an entry covers the journal up to that entry, so equal marks mean equal commits. */
export function fenceFailure({ rows }: Tx, turn: TurnWrite): TurnOutcome {
  const last = turn.entries.at(-1);
  if (last !== undefined && rows.get("journal", [turn.run, last.seq], MARK)?.mark === last.mark)
    return { status: "already_committed" };
  const row = rows.get("runs", [turn.run], FENCE);
  const isMoved = row?.head !== turn.head || row.chain !== turn.previousChain;
  if (row?.turn_token === turn.token && isMoved) return { status: "conflict" };
  return { status: "lease_lost" };
}
