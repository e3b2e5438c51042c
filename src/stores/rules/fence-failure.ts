// Fence failure: the outcome of a turn whose fence does not hold (rules.C2).

import type { TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import type { Tx } from "./statements.ts";

/** The mark of an entry covers the journal up to that entry, so equal marks mean equal commits. */
export function fenceFailure({ sql }: Tx, turn: TurnWrite): TurnOutcome {
  const last = turn.entries.at(-1);
  if (last !== undefined) {
    const stored = sql.entryMark.get(turn.run, last.seq) as { mark: number } | undefined;
    if (stored?.mark === last.mark) return { status: "already_committed" };
  }
  const row = sql.turnFence.get(turn.run) as { token: string | null; head: number; chain: string } | undefined;
  const isMoved = row?.head !== turn.head || row.chain !== turn.previousChain;
  if (row?.token === turn.token && isMoved) return { status: "conflict" };
  return { status: "lease_lost" };
}
