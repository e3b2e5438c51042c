// WorkerLog: what a worker says, to the engine's logger and to those who observe.

import { RepriseError } from "../base/index.ts";
import { emit, isObserved, type Logger } from "../kernel/index.ts";
import type { LogLevel } from "../workflow/index.ts";
import type { WorkerOptions } from "./worker-options.ts";

export class WorkerLog {
  readonly #log: WorkerOptions["log"];
  #stopped = false;

  constructor(log: WorkerOptions["log"]) {
    this.#log = log;
  }

  /** For the code of one step. */
  logger(runId: string, step: string): Logger {
    const log = (level: LogLevel) => (message: string, data?: object) =>
      this.#log(level, message, { run: runId, step, ...data });
    return { info: log("info"), warn: log("warn"), error: log("error") };
  }

  /** The store, or what we made of it, has failed. */
  report(error: unknown): void {
    if (this.#stopped && error instanceof RepriseError) return;
    if (isObserved()) emit({ event: "store.failed", error });
    this.#log("error", error instanceof Error ? error.message : String(error), {
      ...(error instanceof RepriseError && { code: error.code }),
    });
  }

  /** What a worker that has stopped is refused is no news. */
  stop(): void {
    this.#stopped = true;
  }
}
