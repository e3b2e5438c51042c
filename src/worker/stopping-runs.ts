// StoppingRuns: a run that must not go on as it is (A3) is stopped, with its evidence; the right code can take it up again.

import { encode, RepriseError, type Timers } from "../base/index.ts";
import { dataWithoutSecrets, emit, isObserved, type RunRecord, type StopWrite, type Store } from "../kernel/index.ts";
import type { Execution, LogLevel, Recorded, Stop } from "../workflow/index.ts";
import type { Insisted } from "./claims-given-back.ts";
import type { HotRun } from "./hot-run.ts";
import type { LoadingRuns } from "./loading-runs.ts";
import type { Pump } from "./pump.ts";
import { locateStall } from "./stall.ts";

export interface StoppingHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly pump: Pump;
  readonly log: (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;
  readonly onUnheld: (record: RunRecord) => void;
  insist(write: Insisted): void;
  report(error: unknown): void;
}

/** What only who holds the runs can do. */
export interface Holder {
  readonly loading: LoadingRuns;
  /** The worker has stopped. */
  isOver(): boolean;
  /** Out of memory, its results sent on their own. */
  letGo(run: HotRun): void;
  /** The same code against its journal, unheard. */
  again(run: HotRun, recorded: Recorded): Execution;
}

export class StoppingRuns {
  readonly #host: StoppingHost;
  readonly #holder: Holder;

  constructor(host: StoppingHost, holder: Holder) {
    this.#host = host;
    this.#holder = holder;
  }

  stopStalled(run: HotRun): void {
    const { token, record, execution } = run;
    const { loading } = this.#holder;
    this.#holder.letGo(run);
    loading.begin(record.run);
    const again = (recorded: Recorded): Execution => this.#holder.again(run, recorded);
    void locateStall(this.#host, record, execution, again).then(() => {
      loading.end(record.run);
      if (token === undefined || this.#holder.isOver()) return;
      this.stopWith(record, token, run.evidence() ?? "{}", "blocked", execution.stop?.message ?? "");
    });
  }

  stopBroken(run: HotRun, error: unknown): void {
    this.#host.report(error);
    this.stopRun(run, brokenBy(error).evidence, "blocked");
  }

  stopRun(run: HotRun, evidence: string, status: Stop["status"]): void {
    const { token, record } = run;
    if (token === undefined) return;
    this.#holder.letGo(run);
    this.stopWith(record, token, evidence, status, run.execution.stop?.message ?? "internal error");
  }

  stopWith(record: RunRecord, token: string, evidence: string, status: Stop["status"], message: string): void {
    submitStop(this.#host, record, { write: "stop", run: record.run, token, status, evidence }, message);
  }
}

/** What is kept of an error that stops a run; `where`: the node it is about. */
export function brokenBy(error: unknown, where?: string): { readonly message: string; readonly evidence: string } {
  const { code, message } =
    error instanceof RepriseError ? error : { code: "INVARIANT" as const, message: String(error) };
  const data = { code, message, status: "blocked", ...(where !== undefined && { where }) };
  return { message, evidence: encode(dataWithoutSecrets(data)) };
}

/** Stops a run under the token of its turn, or of an item of it. */
export function submitStop(
  host: Pick<StoppingHost, "pump" | "log" | "onUnheld" | "insist" | "report">,
  record: RunRecord,
  write: StopWrite,
  message: string,
): void {
  const { run, token, item, status } = write;
  host.log("error", message, { run: record.id, status });
  host.pump.submit(write).then(
    () => {
      if (isObserved()) emit({ event: "run.stopped", run: record.id, status, message });
      host.onUnheld(record);
    },
    (error: unknown) => {
      host.report(error);
      // Claimed again, it stops again. An item is, when its lease is over.
      if (item === undefined) host.insist({ write: "turn-back", run, token });
    },
  );
}
