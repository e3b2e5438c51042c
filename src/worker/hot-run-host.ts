// What a run in memory needs from the worker that holds it.

import type { EpochMs, Timers } from "../base/index.ts";
import type { Line, NewChild, NextGeneration, RunRecord } from "../kernel/index.ts";
import type { ChildAsk, OperationAsk, PauseEvidence } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { JournalLimitHost } from "./journal-limit.ts";
import type { Continued } from "./run-end.ts";

export interface HotRunHost extends JournalLimitHost {
  now(): EpochMs;
  /** A token when the worker will run this task itself as soon as it is durable. */
  preclaimTask(name: string, line: Line | undefined): { readonly worker: number; readonly token: string } | undefined;
  /** Takes a `preclaimTask` back: the task will not be run. */
  unclaimTask(): void;
  /** Tells the run's tasks at work here that nobody waits; answers how many of them the run had claimed itself. */
  abandonTasks(run: HotRun, isKept: (item: string) => boolean): number;
  preclaimChild(ask: ChildAsk): { readonly worker: number; readonly token: string } | undefined;
  newChild(ask: ChildAsk): NewChild["run"];
  newGeneration(record: RunRecord, outcome: Continued): Omit<NextGeneration, "carried">;
  runOperation(run: HotRun, ask: OperationAsk): void;
  readonly timers: Timers;
  /** G5. It pauses by itself, and says why. */
  pauseItself(run: HotRun, evidence: PauseEvidence): void;
  /** The run was given back, and now has something to commit after all. */
  wantTurn(run: HotRun): void;
  /** The code of the run has been set going: to be looked at when it has done all it can. */
  markRunning(run: HotRun): void;
  /** The run has something to commit. */
  markDirty(run: HotRun): void;
  /** The run has something to deliver. */
  markReady(run: HotRun): void;
}
