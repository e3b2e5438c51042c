// HotRunHost: what a run in memory needs from the worker that holds it.

import type { EpochMs, Timers } from "../base/index.ts";
import type {
  Claim,
  ClaimedItem,
  QueueSlot,
  NewChild,
  NextGeneration,
  RunRecord,
  Telemetry,
  TraceContext,
} from "../kernel/index.ts";
import type { ChildRequest, OperationRequest, PauseEvidence } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { JournalLimitHost } from "./journal-limit.ts";
import type { Continued } from "./run-end.ts";

export interface HotRunHost extends JournalLimitHost {
  now(): EpochMs;
  readonly workerName: string;
  /** The text of this process (runtimes.M2). */
  readonly runtime: string;
  readonly telemetry?: Telemetry | undefined;
  /** A lease when this worker runs the task itself once the commit is durable. */
  claimTask(name: string, slot: QueueSlot | undefined, data: string): Claim | undefined;
  /** Undoes `claimTask`: the task will not run. */
  releaseTaskSlot(item: ClaimedItem): void;
  /** Aborts the run's tasks that run here; returns how many of them the run had claimed eagerly. */
  abandonTasks(run: HotRun, isKept: (item: string) => boolean): number;
  claimChild(request: ChildRequest): { readonly worker: number; readonly token: string } | undefined;
  /** `trace`: of the parent. */
  newChild(request: ChildRequest, trace: TraceContext | undefined): NewChild["run"];
  newGeneration(journal: JournalWriter, outcome: Continued): Omit<NextGeneration, "carried">;
  runOperation(run: HotRun, request: OperationRequest): void;
  readonly timers: Timers;
  /** command-matcher.D5. A replay passed another input to this command than the journal recorded. */
  onInputChanged(run: Pick<RunRecord, "id" | "definition">, command: string, message: string): void;
  /** rules.G5. The run pauses itself; `evidence` says why. */
  pauseRun(run: HotRun, evidence: PauseEvidence): void;
  /** The run was released, and now has something to commit. */
  requestTurn(run: HotRun): void;
  /** The run's code was resumed: the pump collects its commands when it suspends again. */
  markRunning(run: HotRun): void;
  /** The run has something to commit. */
  markDirty(run: HotRun): void;
  /** The run's code has a completion to receive. */
  markReady(run: HotRun): void;
}
