// StoppingRuns: a run that must not go on as it is (A3) is stopped, with its evidence; the right code can take it up again.

import { encode, RepriseError, type Timers } from "../base/index.ts";
import { dataWithoutSecrets, emit, isObserved, type RunRecord, type Store } from "../kernel/index.ts";
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
    const { code, message } =
      error instanceof RepriseError ? error : { code: "INVARIANT" as const, message: String(error) };
    this.stopRun(run, encode(dataWithoutSecrets({ code, message, status: "blocked" })), "blocked");
  }

  stopRun(run: HotRun, evidence: string, status: Stop["status"]): void {
    const { token, record } = run;
    if (token === undefined) return;
    this.#holder.letGo(run);
    this.stopWith(record, token, evidence, status, run.execution.stop?.message ?? "internal error");
  }

  stopWith(record: RunRecord, token: string, evidence: string, status: Stop["status"], message: string): void {
    this.#host.log("error", message, { run: record.id, status });
    this.#host.pump.submit({ write: "stop", run: record.run, token, status, evidence }).then(
      () => {
        if (isObserved()) emit({ event: "run.stopped", run: record.id, status, message });
        this.#host.onUnheld(record);
      },
      (error: unknown) => {
        this.#host.report(error);
        // Claimed again, it stops again.
        this.#host.insist({ write: "turn-back", run: record.run, token });
      },
    );
  }
}
