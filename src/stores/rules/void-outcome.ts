// Why a commit is void, in the words of its outcome (C2).

import type { TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import type { Tx } from "./statements.ts";

/** A fence did not hold. The mark covers everything up to its entry, so equal marks are equal commits. */
export function voidOutcome({ sql }: Tx, turn: TurnWrite): TurnOutcome {
  const last = turn.entries.at(-1);
  if (last !== undefined) {
    const stored = sql.markAt.get(turn.run, last.seq) as { mark: number } | undefined;
    if (stored?.mark === last.mark) return { status: "already-committed" };
  }
  const row = sql.turnOf.get(turn.run) as { token: string | null; head: number; chain: string } | undefined;
  const isMoved = row?.head !== turn.head || row.chain !== turn.previousChain;
  if (row?.token === turn.token && isMoved) return { status: "conflict" };
  return { status: "lease-lost" };
}
