// Log ring: the last log lines of runs that this process executed, in memory.
//
// log-ring.L1. Bounded in lines and in characters: the oldest lines go first. A line of a run is found by the run's id.

import { systemClock, type Clock, type EpochMs } from "../base/index.ts";
import { LOG_LEVELS, type Logger, type LogLevel } from "../kernel/index.ts";

/** A line of a run's log. */
export interface KeptLine {
  readonly at: EpochMs;
  readonly level: LogLevel;
  readonly message: string;
  readonly run: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const MAX_LINES = 10_000;
const MAX_CHARACTERS = 8_000_000;

/**
 * Keeps the last log lines of runs in memory, for the dashboard: its `logger` goes to the engine, and itself to the server.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { createServer, LogRing } from "reprise/server";
 * const hello = workflow("hello", async (ctx) => ctx.log.info("working"));
 * const logs = new LogRing();
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello], logger: logs.logger(console) });
 * await using server = createServer(engine, { logs });
 * ```
 */
export class LogRing {
  readonly #lines: { readonly line: KeptLine; readonly size: number }[] = [];
  readonly #clock: Clock;
  #first = 0;
  #size = 0;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** The lines of the run, oldest first. */
  of(run: string): readonly KeptLine[] {
    return this.#lines.slice(this.#first).flatMap(({ line }) => (line.run === run ? [line] : []));
  }

  /** A logger that keeps the lines of runs, and passes every line to `next`. */
  logger(next: Logger): Logger {
    const kept: Partial<Record<LogLevel, (message: string, data?: object) => void>> = {};
    for (const level of LOG_LEVELS)
      kept[level] = (message, data) => {
        this.#keep(level, message, data);
        next[level]?.(message, data);
      };
    return kept as Logger;
  }

  /** log-ring.L1 */
  #keep(level: LogLevel, message: string, data: object = {}): void {
    const { run } = data as { readonly run?: unknown };
    if (typeof run !== "string") return;
    const line = { at: this.#clock.now(), level, message, run, data: data as KeptLine["data"] };
    const size = message.length + sizeOf(data);
    this.#lines.push({ line, size });
    this.#size += size;
    while (this.#lines.length - this.#first > MAX_LINES || this.#size > MAX_CHARACTERS) {
      this.#size -= this.#lines[this.#first]!.size;
      this.#first += 1;
    }
    if (this.#first < MAX_LINES) return;
    this.#lines.splice(0, this.#first);
    this.#first = 0;
  }
}

function sizeOf(data: object): number {
  try {
    return JSON.stringify(data).length;
  } catch {
    // A bigint or a cycle.
    return 1_000;
  }
}
