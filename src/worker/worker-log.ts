// WorkerLog: what a worker says, to the engine's logger and to those who observe.
//
// A store in trouble fails many calls, many times a second. The log says each thing once a second, and how often it was so.

import { RepriseError, type EpochMs } from "../base/index.ts";
import { emit, isObserved, type HistoryBreak, type Logger } from "../kernel/index.ts";
import type { LogLevel } from "../workflow/index.ts";
import type { WorkerOptions } from "./worker-options.ts";

const QUIET_MS = 1_000;
/** Different things that are remembered. */
const REMEMBERED = 100;

export class WorkerLog {
  readonly #log: WorkerOptions["log"];
  readonly #now: () => EpochMs;
  readonly #said = new Map<string, { readonly at: EpochMs; unsaid: number }>();
  #stopped = false;

  constructor(log: WorkerOptions["log"], now: () => EpochMs) {
    this.#log = log;
    this.#now = now;
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
    const message = error instanceof Error ? error.message : String(error);
    const unsaid = this.#countUnsaid(message);
    if (unsaid === undefined) return;
    this.#log("error", message, {
      ...(error instanceof RepriseError && { code: error.code }),
      ...(unsaid > 0 && { repeated: unsaid }),
    });
  }

  /** The database is not the one it was. */
  historyBreak({ kind, at, detail }: HistoryBreak): void {
    if (kind === "failed-over") {
      if (isObserved()) emit({ event: "store.failed-over", at: new Date(at) });
      this.#log(
        "warn",
        "The database server was replaced or restarted. This worker drops the work it holds and resumes it from the database.",
        {
          at: new Date(at).toISOString(),
        },
      );
      return;
    }
    if (isObserved()) emit({ event: "store.rolled-back", at: new Date(at), detail });
    this.#log(
      "error",
      `The database went back to an earlier state: ${detail}. Commits since then are lost; this process drops what it holds and continues from what the database has. Run \`reprise doctor\`, and start lost runs again with the same ids.`,
      { code: "STORE_ROLLED_BACK", at: new Date(at).toISOString() },
    );
  }

  /** RC1 */
  gaveBack(count: number): void {
    this.#log(
      "warn",
      `The database listed ${count} leases of this worker that the worker does not hold; it released them.`,
      {
        count,
      },
    );
  }

  /** How often it was kept back since it was last said; undefined when it is kept back now. */
  #countUnsaid(message: string): number | undefined {
    const now = this.#now();
    const before = this.#said.get(message);
    if (before !== undefined && now - before.at < QUIET_MS) {
      before.unsaid += 1;
      return undefined;
    }
    if (this.#said.size >= REMEMBERED) this.#said.clear();
    this.#said.set(message, { at: now, unsaid: 0 });
    return before?.unsaid ?? 0;
  }

  /** What a worker that has stopped is refused is no news. */
  stop(): void {
    this.#stopped = true;
  }
}
