// Message: appends a message from outside to a run, also before the run is started (rules.W6).
//
// A message with `beforeStart` to an id without a run creates a row without a journal, in the status `expected`. The start of
// that id turns the row into the run, in one transaction. So the message and the start cannot miss each other.

import {
  CHAIN_START,
  TurnDue,
  answerToSettlement,
  hasEnded,
  type EndedRunStatus,
  type ExpectedRun,
  type MessageOutcome,
  type MessageWrite,
  type RunNumber,
  type RunStatus,
  type SentSettlement,
} from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import type { Tx } from "./transaction.ts";
import { NEW_RUN, newestStatus } from "./run-rows.ts";
import { nextRun } from "./start.ts";
import { deleteRun } from "./sweep.ts";

interface Newest {
  readonly run: RunNumber;
  readonly status: RunStatus;
  readonly definition: string;
}

/** Begins the target of a row in `once` that holds a sender's dedup id. Names hold no control characters. */
const DEDUP_ID_PREFIX = "\u0001";

export function applyMessage(tx: Tx, write: MessageWrite): MessageOutcome {
  const { to, arrival, once, dedupId, definition, beforeStart } = write;
  const newest = newestStatus(tx.rows, to) ?? (beforeStart && expectRun(tx, to, beforeStart));
  if (newest === undefined) return { status: "no_run" };
  const { run, status, definition: found } = newest;
  if (definition !== undefined && definition !== found) return { status: "other_definition", definition: found };
  if (hasEnded(status)) return { status: "ended", as: status satisfies EndedRunStatus };
  if (status === "expected" && arrival.type === "CancelRequested") {
    // The run does not exist yet: the cancel removes the row that expects it.
    deleteRun(tx, run);
    return { status: "committed", run };
  }
  const { rows } = tx;
  if (once && !rows.add("once", { run, target: arrival.target, at: 0, data: arrival.data })) {
    const settled = rows.get("once", [run, arrival.target], SETTLED)?.data;
    return { status: "duplicate", ...(typeof settled === "string" && { settled }) };
  }
  if (dedupId !== undefined && !rows.add("once", { run, target: DEDUP_ID_PREFIX + dedupId, at: tx.now, data: null }))
    return { status: "duplicate" };
  appendToInbox(tx, run, arrival);
  return { status: "committed", run };
}

const SETTLED = ["data"] as const;

/** Delivers what the code of a run settles in other runs, and answers it. Returns the runs that received a message. */
export function sendSettlements(tx: Tx, run: RunNumber, settlements: readonly SentSettlement[]): readonly RunNumber[] {
  const reached: RunNumber[] = [];
  for (const settlement of settlements) {
    const { to, definition, arrival } = settlement;
    const outcome = applyMessage(tx, { write: "message", to, definition, arrival, once: true });
    if (outcome.status === "committed") reached.push(outcome.run);
    appendToInbox(tx, run, answerToSettlement(settlement, outcome));
  }
  return reached;
}

function expectRun(tx: Tx, id: string, { definition, kind, version, runtime }: ExpectedRun): Newest {
  const run = nextRun(tx);
  tx.rows.insert("runs", {
    ...NEW_RUN,
    run,
    id,
    definition,
    kind,
    version,
    status: "expected",
    root: run,
    head: 0,
    chain: CHAIN_START,
    turn_due: TurnDue.no,
    created_at: tx.now,
    runtime,
  });
  tx.nextRun = run + 1;
  return { run, status: "expected", definition };
}
