// Message: what comes from outside, to a run that is there or to one that is not yet (W6).
//
// A run that was spoken to before it was started has its row, without a journal, in the status `expected`. Whoever starts
// the id turns that row into the run, in one transaction: neither the message nor the start can miss the other.

import {
  CHAIN_START,
  hasEnded,
  type EndStatus,
  type ExpectedRun,
  type MessageOutcome,
  type MessageWrite,
  type RunNumber,
  type Status,
} from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import type { Tx } from "./statements.ts";
import { nextRun } from "./start.ts";
import { forgetRun } from "./sweep.ts";

interface Newest {
  readonly run: RunNumber;
  readonly status: Status;
  readonly definition: string;
}

/** No target of ours starts like this: names hold no control characters. */
export const DEDUP = "\u0001";

export function applyMessage(tx: Tx, write: MessageWrite): MessageOutcome {
  const { to, arrival, once, dedupId, definition, beforeStart } = write;
  const newest = tx.sql.newestStatus.get(to) as unknown as Newest | undefined;
  if (newest === undefined && beforeStart === undefined) return { status: "no-run" };
  const { run, status, definition: follows } = newest ?? expectRun(tx, to, beforeStart as ExpectedRun);
  if (definition !== undefined && definition !== follows) return { status: "other-definition", definition: follows };
  if (hasEnded(status)) return { status: "ended", as: status satisfies EndStatus };
  if (status === "expected" && arrival.type === "CancelRequested") {
    // There is nothing to cancel but the expectation.
    forgetRun(tx, run);
    return { status: "committed", run };
  }
  const { insertOnce } = tx.sql;
  if (once && insertOnce.run(run, arrival.target, 0).changes === 0) return { status: "duplicate" };
  if (dedupId !== undefined && insertOnce.run(run, DEDUP + dedupId, tx.now).changes === 0)
    return { status: "duplicate" };
  arrive(tx, run, arrival);
  return { status: "committed", run };
}

function expectRun(tx: Tx, id: string, { definition, kind, version, runtime }: ExpectedRun): Newest {
  const run = nextRun(tx);
  tx.sql.insertExpected.run(run, id, definition, kind, version, run, CHAIN_START, tx.now, runtime);
  tx.nextRun = run + 1;
  return { run, status: "expected", definition };
}
