// Head moves: the commit of a turn as one statement with its columns written out, for a run without unread messages that is not paused:
// the override of the change in ../rules/commit-turn.ts. Every step of a workflow pays for it: 1.3 instead of 1.7 µs.
//
// head-moves.H1. A statement does what the rule's change does; a test compares the rows that both leave.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { EpochMs } from "../../base/index.ts";
import { TurnDue, type TurnWrite } from "../../kernel/index.ts";

const MOVE = "update runs set head = ?1, chain = ?2, read = ?3";
const FENCE = "where run = ?4 and turn_token = ?5 and head = ?6 and chain = ?7 and arrivals = ?3";
const NO_TURN = `turn_due = ${TurnDue.no}, turn_token = null, turn_worker = null`;

const SQL = {
  // Without entries the run made no progress, so a suspect stays a suspect.
  stay: `${MOVE} ${FENCE}`,
  // Touches no indexed column.
  hold: `${MOVE}, takeovers = 0 ${FENCE}`,
  release: `${MOVE}, takeovers = 0, status = 'waiting', ${NO_TURN} ${FENCE} and status = 'running'`,
  end: `${MOVE}, takeovers = 0, status = ?8, ended_at = ?9, unread = ?10, ${NO_TURN} ${FENCE}`,
} as const;

export class HeadMoves {
  readonly #db: DatabaseSync;
  readonly #statements: Partial<Record<keyof typeof SQL, StatementSync>> = {};

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** False: the fence does not hold, or the run has unread messages or is paused. */
  move(turn: TurnWrite, now: EpochMs): boolean {
    const { run, token, head, chain, previousChain, read, then } = turn;
    const next = head + turn.entries.length;
    const statement = this.#statement(kindOf(turn));
    const { changes } =
      then === "hold" || then === "release"
        ? statement.run(next, chain, read, run, token, head, previousChain)
        : statement.run(next, chain, read, run, token, head, previousChain, then, now, turn.unread ?? 0);
    return changes === 1;
  }

  #statement(kind: keyof typeof SQL): StatementSync {
    return (this.#statements[kind] ??= this.#db.prepare(SQL[kind]));
  }
}

function kindOf({ then, entries }: TurnWrite): keyof typeof SQL {
  if (then === "hold") return entries.length === 0 ? "stay" : "hold";
  return then === "release" ? "release" : "end";
}
