// RunStopper: stops a run that must not continue (rules.A3), and stores the evidence. `resume` continues it with fixed code.

import { encode, RepriseError, shellWord, type Timers } from "../base/index.ts";
import {
  dataWithoutSecrets,
  emit,
  isObserved,
  type OpenSpan,
  type RunRecord,
  type StopWrite,
  type Store,
} from "../kernel/index.ts";
import type { Execution, LogLevel, RecordedJournal, Stop } from "../workflow/index.ts";
import type { PersistentWrite } from "./released-claims.ts";
import type { HotRun } from "./hot-run.ts";
import type { LoadingRuns } from "./loading-runs.ts";
import type { Pump } from "./pump.ts";
import { locateStall } from "./locate-stall.ts";

export interface RunStopperHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly pump: Pump;
  readonly log: (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;
  readonly onUnheld: (record: RunRecord) => void;
  persist(write: PersistentWrite): void;
  report(error: unknown): void;
}

/** What the runs' holder does for the stopper. */
export interface StoppedRunHolder {
  readonly loading: LoadingRuns;

  isStopped(): boolean;
  /** Removes the run from memory and submits its results separately. */
  releaseMemory(run: HotRun): void;
  /** A second execution of the same code, without log output. */
  replayRun(run: HotRun, recorded: RecordedJournal): Execution;
}

export class RunStopper {
  readonly #host: RunStopperHost;
  readonly #holder: StoppedRunHolder;

  constructor(host: RunStopperHost, holder: StoppedRunHolder) {
    this.#host = host;
    this.#holder = holder;
  }

  stopStalled(run: HotRun): void {
    const { token, record, execution } = run;
    const { loading } = this.#holder;
    const span = run.journal.takeStretch("blocked");
    this.#holder.releaseMemory(run);
    const locating = loading.begin(record.run);
    const again = (recorded: RecordedJournal): Execution => this.#holder.replayRun(run, recorded);
    void locateStall(this.#host, record, execution, again).then(() => {
      loading.end(record.run, locating);
      if (token === undefined || this.#holder.isStopped()) return;
      this.stopWith(record, token, evidenceOf(run), "blocked", execution.stop?.message ?? "", span);
    });
  }

  stopBroken(run: HotRun, error: unknown): void {
    const { token, record } = run;
    if (token === undefined) return this.#host.report(error);
    this.#holder.releaseMemory(run);
    this.stopClaimed(record, token, error, run.journal.takeStretch("blocked"));
  }

  stopClaimed(record: RunRecord, token: string, error: unknown, span?: OpenSpan): void {
    this.#host.report(error);
    const { message, evidence } = blockedEvidence(error);
    this.stopWith(record, token, evidence, "blocked", message, span);
  }

  stopRun(run: HotRun, evidence: string, status: Stop["status"]): void {
    const { token, record } = run;
    if (token === undefined) return;
    this.#holder.releaseMemory(run);
    this.stopWith(record, token, evidence, status, run.execution.stop?.message ?? "", run.journal.takeStretch(status));
  }

  stopWith(
    record: RunRecord,
    token: string,
    evidence: string,
    status: Stop["status"],
    message: string,
    span?: OpenSpan,
  ): void {
    submitStop(this.#host, record, { write: "stop", run: record.run, token, status, evidence, span }, message);
  }
}

/** The evidence of a run whose code stopped it, stored beside the journal. */
export function evidenceOf({ execution: { stop }, record }: HotRun): string {
  if (stop === undefined) return "{}";
  const { differs: _, ...evidence } = stop;
  return encode(dataWithoutSecrets({ ...evidence, head: record.head }));
}

/** The evidence of an error that stops a run; `where`: the node. */
export function blockedEvidence(
  error: unknown,
  where?: string,
): { readonly message: string; readonly evidence: string } {
  const { code, message } =
    error instanceof RepriseError ? error : { code: "INVARIANT" as const, message: String(error) };
  const data = { code, message, status: "blocked", ...(where !== undefined && { where }) };
  return { message, evidence: encode(dataWithoutSecrets(data)) };
}

/** Stops a run, under the token of its turn or of one of its items. */
export function submitStop(
  host: Pick<RunStopperHost, "pump" | "log" | "onUnheld" | "persist" | "report">,
  record: RunRecord,
  write: StopWrite,
  message: string,
): void {
  const { run, token, item, status } = write;
  const { id, definition } = record;
  const reason = message.replace(/\.?$/, ".");
  host.log("error", `Run ${id} of ${definition} is stopped: ${reason} Next: \`reprise show ${shellWord(id)}\`.`, {
    run: id,
    definition,
    status,
  });
  host.pump.submit(write).then(
    () => {
      if (isObserved()) emit({ event: "run.stopped", run: record.id, status, message });
      host.onUnheld(record);
    },
    (error: unknown) => {
      host.report(error);
      // Claimed again, the run stops again. An item is claimed again when its lease expires.
      if (item === undefined) host.persist({ write: "return-turn", run, token });
    },
  );
}
