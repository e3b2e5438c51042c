// WorkerPort: what handles need from the executing side of their process. An engine fills it with its worker, a client
// with a writer that executes nothing (client-writer.ts).

import type { EpochMs } from "../base/index.ts";
import type {
  Claim,
  DefinitionVersion,
  Entry,
  NewItem,
  OutcomeOf,
  RunNumber,
  RunRecord,
  Write,
} from "../kernel/index.ts";
import type { HotRun, Worker, WorkerOptions } from "../worker/index.ts";

/** What the executing side reports to the handles of its process. */
export interface WorkerEvents extends Pick<
  WorkerOptions,
  "guard" | "log" | "onEnded" | "onCommitted" | "onUnheld" | "onChanged"
> {
  /** A write that a handle submitted is durable, or was refused. */
  readonly onWritten: (outcome: unknown) => void;
}

export interface WorkerPort {
  start(): Promise<void>;
  submit<W extends Write>(write: W): Promise<OutcomeOf<W>>;
  /** Resolves when every write submitted so far has settled. */
  flushed(): Promise<void>;
  /** Work may be ready. */
  wake(): void;
  /** Work becomes ready at this time. */
  dueAt(at: EpochMs): void;
  /** True while this process delivers to the runs it holds. */
  readonly works: boolean;
  readonly timesRolledBack: number;
  /** A claim to start a run with, so that this process executes it at once; undefined: the queue hands it out. */
  claimEagerly(definition: DefinitionVersion): Claim | undefined;
  /** Executes a run that was started with such a claim. */
  adopt(record: RunRecord, first: Entry, token: string): void;
  holds(run: RunNumber): boolean;
  heldIds(): ReadonlySet<string>;
  findHot(run: RunNumber): HotRun | undefined;
  onArrival(run: RunNumber): void;
  onPaused(run: RunNumber): void;
  onResumed(run: RunNumber): void;
  onRetried(run: RunNumber, items: readonly NewItem[]): void;
  onMigrated(run: RunNumber): void;
  onTerminated(record: RunRecord, notified: readonly RunNumber[]): void;
  /** Starts nothing new and waits for work in progress; false when the time was too short. */
  drain(graceMs: number): Promise<boolean>;
  close(): void;
  crash(): void;
}

export function workerPortOf(worker: Worker, { onWritten }: Pick<WorkerEvents, "onWritten">): WorkerPort {
  const { pump, runs, control, starts, eagerClaims, events, poller } = worker.parts;
  return {
    start: () => worker.start(),
    submit: async (write) => {
      const outcome = await pump.submit(write);
      onWritten(outcome);
      return outcome;
    },
    flushed: () => pump.flushed(),
    wake: () => events.due(),
    dueAt: (at) => poller.dueAt(at),
    get works() {
      return worker.parts.works;
    },
    get timesRolledBack() {
      return events.timesRolledBack;
    },
    claimEagerly: (definition) => eagerClaims.claimRun(definition),
    adopt: (record, first, token) => starts.adopt(record, first, token),
    holds: (run) => runs.holds(run),
    heldIds: () => runs.heldIds(),
    findHot: (run) => runs.find(run),
    onArrival: (run) => runs.arrived(run),
    onPaused: (run) => control.onPaused(run),
    onResumed: (run) => control.onResumed(run),
    onRetried: (run, items) => control.onRetried(run, items),
    onMigrated: (run) => control.onMigrated(run),
    onTerminated: (record, notified) => control.onTerminated(record, notified),
    drain: (graceMs) => worker.drain(graceMs),
    close: () => worker.close(),
    crash: () => worker.crash(),
  };
}
