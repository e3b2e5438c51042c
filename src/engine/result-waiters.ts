// ResultWaiters: the callers that wait for the end of a run. They settle when this process's worker ends the run, or when
// a read of the store finds that it has ended.

import { RepriseError } from "../base/index.ts";
import type { EndEntry, RunRecord } from "../kernel/index.ts";
import { RunSubscriptions } from "./run-subscriptions.ts";

/** A run that has ended or was stopped, with the entry that ended it. */
export interface RunEnding {
  readonly record: RunRecord;
  readonly last: EndEntry | undefined;
}

export interface ResultWaiter {
  /** Called once: with the ending; with an error when the run is lost; with `undefined` when the engine closes. */
  settle(ending: RunEnding | RepriseError | undefined): void;
}

export class ResultWaiters extends RunSubscriptions<ResultWaiter> {
  settle(id: string, ending: RunEnding | RepriseError | undefined): void {
    for (const waiter of this.take(id)) waiter.settle(ending);
  }

  /** Rejects the waiters of a run that no longer exists; returns whether it does not. */
  settleIfLost(id: string, found: RunRecord | undefined): boolean {
    const isLost = this.isLost(id, found);
    if (isLost) this.settle(id, lostRunError(id, found !== undefined));
    return isLost;
  }

  close(): void {
    for (const id of this.ids) this.settle(id, undefined);
  }
}

export function lostRunError(id: string, isReplaced: boolean): RepriseError {
  const now = isReplaced ? "another run was started under its id since" : "the store has no run with this id now";
  const next = isReplaced ? "Use `engine.get(definition, id)` to get the new one." : "Start it again with the same id.";
  return new RepriseError(
    "STORE_ROLLED_BACK",
    `Run ${id} is lost: the database went back to a state before its start, and ${now}. \`reprise doctor\` shows when. ${next}`,
    { details: { run: id } },
  );
}
