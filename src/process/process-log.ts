// ProcessLog: what a process reports about its store, to the engine's logger and as events.
//
// A failing store fails many calls per second. The log repeats a message at most once a second, with how often it occurred.

import { RepriseError, type EpochMs } from "../base/index.ts";
import { emit, isObserved, type HistoryBreak, type Logger, type PureStep, type RunRecord } from "../kernel/index.ts";
import type { LogLevel } from "../workflow/index.ts";

export type LogLine = (level: LogLevel, message: string, data: Readonly<Record<string, unknown>>) => void;

const REPEAT_MS = 1_000;
/** How many different messages are remembered. */
const MESSAGE_LIMIT = 100;

/** The fields of a line of user code: those of the engine come first, and data of the same name cannot replace them. */
export function lineData(own: Readonly<Record<string, unknown>>, data: object | undefined): Record<string, unknown> {
  return { ...own, ...data, ...own };
}

export class ProcessLog {
  readonly #log: LogLine;
  readonly #now: () => EpochMs;
  readonly #lastLogged = new Map<string, { readonly at: EpochMs; suppressed: number }>();
  #stopped = false;

  constructor(log: LogLine, now: () => EpochMs) {
    this.#log = log;
    this.#now = now;
  }

  /** The logger of one step's code. */
  logger(runId: string, step: string): Required<Logger> {
    const log = (level: LogLevel) => (message: string, data?: object) =>
      this.#log(level, message, lineData({ run: runId, step }, data));
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }

  /** Logs a failure of the store, or of what the process made of it. */
  report(error: unknown): void {
    if (this.#stopped && error instanceof RepriseError) return;
    if (isObserved()) emit({ event: "store.failed", error });
    const message = error instanceof Error ? error.message : String(error);
    const suppressed = this.#countSuppressed(message);
    if (suppressed === undefined) return;
    this.#log("error", message, {
      ...(error instanceof RepriseError && { code: error.code }),
      ...(suppressed > 0 && { repeated: suppressed }),
    });
  }

  /** Logs that the database server was replaced, or that the database lost commits. */
  historyBreak({ kind, at, detail }: HistoryBreak): void {
    if (kind === "failed_over") {
      if (isObserved()) emit({ event: "store.failed_over", at: new Date(at) });
      this.#log(
        "warn",
        "The database server was replaced or restarted. This process drops the work it holds and resumes it from the database.",
        {
          at: new Date(at).toISOString(),
        },
      );
      return;
    }
    if (isObserved()) emit({ event: "store.rolled_back", at: new Date(at), detail });
    this.#log(
      "error",
      `The database went back to an earlier state: ${detail}. Commits since then are lost; this process drops what it holds and continues from what the database has. Run \`reprise doctor\`, and start lost runs again with the same ids.`,
      { code: "STORE_ROLLED_BACK", at: new Date(at).toISOString() },
    );
  }

  /** Reports an input that differs from the recorded one; the run continues. */
  inputChanged({ id: run, definition }: Pick<RunRecord, "id" | "definition">, step: string, message: string): void {
    if (isObserved()) emit({ event: "input.changed", run, definition, step, message });
    this.#log(
      "warn",
      `${message}. The run continues with its recorded results. Guard the change with ctx.patched(…), or restore the code; \`reprise verify ${run} <file>\` compares them.`,
      { run, step },
    );
  }

  /** The memo of a pure step is off. */
  memoOff({ kind, name, of, pure }: PureStep, status: "divergent" | "damaged"): void {
    const what = `${kind} ${name}${of === undefined ? "" : ` of ${of}`}`;
    const why =
      status === "divergent"
        ? `returned different results for the same input, although it is declared pure (version ${pure})`
        : "has a remembered result that is damaged";
    const message = `The ${what} ${why}. Its results are not reused for this input. Run \`reprise memo list --off\`.`;
    if (this.#countSuppressed(message) !== undefined) this.#log("warn", message, { step: name });
  }

  /** lease-reconciler.R1 */
  leasesReleased(count: number): void {
    this.#log(
      "warn",
      `The database listed ${count} leases of this worker that the worker does not hold; it released them.`,
      {
        count,
      },
    );
  }

  /** How often the message was suppressed since it was last logged; undefined when it is suppressed now. */
  #countSuppressed(message: string): number | undefined {
    const now = this.#now();
    const before = this.#lastLogged.get(message);
    if (before !== undefined && now - before.at < REPEAT_MS) {
      before.suppressed += 1;
      return undefined;
    }
    if (this.#lastLogged.size >= MESSAGE_LIMIT) this.#lastLogged.clear();
    this.#lastLogged.set(message, { at: now, suppressed: 0 });
    return before?.suppressed ?? 0;
  }

  /** After this, errors of calls that were refused because the process stops are not logged. */
  stop(): void {
    this.#stopped = true;
  }
}
