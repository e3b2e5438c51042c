// WorkerEvents: what happened to a write, a run or the store, and which parts act on it. Each event is reported by one part and listed
// here once; a part that only needs one other part calls it directly.

import { isScheduled } from "../kernel/index.ts";
import type {
  ChangeNotice,
  EndedRunStatus,
  EndEntry,
  HistoryBreak,
  Outcome,
  RunRecord,
  TurnOutcome,
  TurnWrite,
  Write,
} from "../kernel/index.ts";
import { endSpans } from "../process/index.ts";
import { CLAIM_KINDS } from "./claimer.ts";
import type { HotRun } from "./hot-run.ts";
import type { Parts } from "./worker-parts.ts";
import { mayAcquireLease } from "./released-claims.ts";

export class WorkerEvents {
  readonly #parts: Parts;
  /** worker.R4. How often this process saw the database go back. */
  timesRolledBack = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  // ── writes ──

  /** The store answered a write of this worker; called before the others. */
  wrote(write: Write, outcome: Outcome): void {
    const { meter, outbox, failures, options } = this.#parts;
    meter.note(write, outcome);
    outbox.wrote(write, outcome);
    if (options.telemetry !== undefined) endSpans(write, outcome);
    failures.onWrote(write, outcome);
    options.remote?.wrote(write, outcome);
  }

  /** The store answered the commit of a run in memory. */
  committed(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void {
    const { failures, commits, drain } = this.#parts;
    failures.onTurn(run.record, write, outcome);
    commits.onCommitted(run, write, outcome);
    drain.onNodeProgress();
  }

  /** worker.R3. The store rejected the batch, or its outcome is unknown: the worker does not know which writes it applied. */
  failed(writes: readonly Write[], error: unknown): void {
    this.#parts.log.report(error);
    if (writes.some(mayAcquireLease)) this.#parts.restart.run();
  }

  // ── runs ──

  ended(record: RunRecord, status: EndedRunStatus, last: EndEntry): void {
    const { failures, schedules, options } = this.#parts;
    failures.onEnded(record, last);
    // The schedule may have queued its next run behind this one.
    if (record.tags.length > 0 && isScheduled(record.tags)) schedules.poll();
    options.onEnded(record, status, last);
  }

  // ── the store ──

  /** Work of any kind may be due. */
  due(): void {
    this.#parts.claimer.request(...CLAIM_KINDS);
    this.#parts.schedules.poll();
  }

  /** Another process wrote to the store. Without a notice, any kind of work may be ready. Returns how many runs are read again. */
  changed(notice: ChangeNotice | undefined): number {
    const { claimer, pump, schedules, store, log, options, runs, itemLeaseCheck, works } = this.#parts;
    const report = (error: unknown): void => log.report(error);
    if (notice !== undefined) claimer.onNotice(notice);
    else if (pump.pollsSeparately) claimer.requestAll();
    else this.due();
    if (notice?.work.has("schedules") !== false) schedules.poll();
    if (notice === undefined && !works) store.checkHistory?.().catch(report);
    runs.refreshHeld(notice?.runs).catch(report);
    itemLeaseCheck.schedule();
    return options.onChanged(notice?.runs) + (notice?.runs.size ?? runs.count);
  }

  /** worker.R4 */
  historyBroke(change: HistoryBreak): void {
    const { log, restart, runs, flows, options } = this.#parts;
    if (this.#parts.isStopped) return;
    this.timesRolledBack += Number(change.kind === "rolled_back");
    log.historyBreak(change);
    restart.run();
    runs.forgetIdle();
    flows.clear();
    options.onChanged(undefined);
  }

  // ── the lease ──

  /** The lease was renewed. The poller's timer stops while the machine sleeps, and does not see the wall clock jump. */
  renewed(): void {
    const { claimer, gates, quarantine, schedules } = this.#parts;
    gates.returnIdle();
    claimer.request(...(quarantine.holdsIsolated ? CLAIM_KINDS : (["due"] as const)));
    schedules.poll();
  }
}
