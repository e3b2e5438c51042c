// TurnCommits: what follows when the code of a run in memory has suspended, and when a commit of the run was answered.

import { CancelledError } from "../base/index.ts";
import {
  emitEnded,
  isObserved,
  type EndedRunStatus,
  type EndEntry,
  type TurnOutcome,
  type TurnWrite,
} from "../kernel/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { Parts } from "./worker-parts.ts";
import { releasesOf } from "./released-claims.ts";
import { evidenceOf } from "./run-stopper.ts";

export class TurnCommits {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The code has suspended: its commands become entries. */
  onDrained(run: HotRun): void {
    const { drain, stopper } = this.#parts;
    // worker.R2
    if (drain.isDraining) return drain.onNodeProgress();
    if (run.isDiscarded) return;
    try {
      run.afterDrain();
    } catch (error) {
      return stopper.stopBroken(run, error);
    }
    const { stop } = run.execution;
    if (stop?.code === "STALLED") stopper.stopStalled(run);
    else if (stop !== undefined) stopper.stopRun(run, evidenceOf(run), stop.status);
  }

  onCommitted(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void {
    const { quarantine, persistentWrites, restart, runs, options, drain, tasks, starts, poller, claimer, pump } =
      this.#parts;
    // Chunks alone do not clear a suspect: a function may emit, and then kill its worker. A run that is released runs none.
    if (write.entries.length > 0 || write.then === "release") quarantine.clear(String(run.record.run));
    if (run.isDiscarded) {
      if (!this.#parts.isStopped) for (const claim of releasesOf(write, outcome)) persistentWrites.submit(claim);
      return;
    }
    // The earlier commit leased tasks and children to this worker, which does not know them.
    if (outcome.status === "already_committed") return restart.run();
    if (outcome.status !== "committed") return runs.drop(run, true);
    const { localItems, children, released } = run.onCommitted();
    options.onCommitted(run.record);
    for (const item of localItems)
      if (drain.isDraining) tasks.giveBackReserved(item);
      else tasks.start(item, true);
    starts.adoptChildren(children, outcome.children);
    for (const { kind, availableAt } of write.items) if (kind === "timer") poller.dueAt(availableAt);
    for (const { to } of write.messages) if (typeof to === "number") runs.arrived(to);
    for (const child of outcome.reached ?? []) runs.arrived(child);
    const ofItems = write.dropped.length > 0 || (run.ended !== undefined && !run.execution.waits.isEmpty);
    if (ofItems || run.ended !== undefined) claimer.onQueueSlotFreed(ofItems);
    if (write.outgoing.length > 0) claimer.request("messages");
    if (run.ended !== undefined) {
      this.#onEnded(run, run.ended, write.entries.at(-1)!);
      return starts.adoptNext(write.next, outcome.next);
    }
    if (outcome.more) {
      if (released) claimer.request("turns");
      else runs.loadInbox(run);
    }
    if (released) runs.release(run);
    else if (run.isParked) this.#releaseParked(run);
    else pump.markDirty(run);
    if (claimer.isRequested("turns") || claimer.isRequested("items")) pump.wake();
  }

  #onEnded(run: HotRun, status: EndedRunStatus, last: EndEntry): void {
    const { tasks, runs, unawaited, store, events, claimer, pump } = this.#parts;
    tasks.abandon(run.record.run, () => new CancelledError("The run has ended."));
    runs.forget(run);
    if (status === "completed" || status === "continued") unawaited.onReturned(run);
    if (isObserved()) emitEnded(run.record, status, store.now());
    events.ended(run.record, status, last);
    if (claimer.isRequested("turns")) pump.wake();
  }

  /** control.C1. The run leaves memory: any worker can replay it after a resume. */
  #releaseParked(run: HotRun): void {
    const { runs, persistentWrites, options } = this.#parts;
    const { token, record } = run;
    runs.forget(run);
    const span = run.journal.takeStretch("released");
    if (token !== undefined) persistentWrites.submit({ write: "return-turn", run: record.run, token, span });
    options.onUnheld(record);
  }
}
