// Log ring: the last log lines of runs that this process executed, in memory.
//
// log-ring.L1. Bounded in lines and in characters: the oldest lines go first. A line of a run is found by the run's id.
// log-ring.L2. A line is kept as JSON, made when it is logged: what the code does with the object afterwards changes nothing, and an
//   object that is no JSON, such as one with a cycle, costs the line its data and no more.
// log-ring.L3. The cursor of a line names the ring and the line's number in it. So a reader continues behind a line that is gone, and one
//   with a cursor of another process starts again.

import { plainJson, systemClock, type Clock, type EpochMs } from "../base/index.ts";
import { LOG_LEVELS, type Logger, type LogLevel } from "../kernel/index.ts";

/** A line of a run's log. */
export interface KeptLine {
  /** From 1 on, over the lines of all runs. */
  readonly number: number;
  readonly at: EpochMs;
  readonly level: LogLevel;
  readonly message: string;
  readonly run: string;
  /** The command whose code logged it. */
  readonly step: string | undefined;
  readonly data: Readonly<Record<string, unknown>>;
}

const MAX_LINES = 10_000;
const MAX_CHARACTERS = 8_000_000;
/** Of the data of one line. */
const MAX_DATA = 100_000;

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
  readonly #name: string;
  #first = 0;
  #size = 0;
  #count = 0;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#name = clock.now().toString(36);
  }

  /** log-ring.L3 */
  cursorOf({ number }: Pick<KeptLine, "number">): string {
    return `${this.#name}-${number}`;
  }

  /** The number in a cursor; undefined if it is of another ring (log-ring.L3). */
  numberIn(cursor: string | undefined): number | undefined {
    const [name, number = "", ...rest] = cursor?.split("-") ?? [];
    return name === this.#name && rest.length === 0 && /^\d{1,15}$/.test(number) ? Number(number) : undefined;
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
    const { run, step, ...rest } = data as { readonly run?: unknown; readonly step?: unknown };
    if (typeof run !== "string") return;
    const { kept, size: dataSize } = snapshot(rest);
    this.#count += 1;
    const line = {
      number: this.#count,
      at: this.#clock.now(),
      level,
      message: String(message),
      run,
      step: typeof step === "string" ? step : undefined,
      data: kept,
    };
    const size = line.message.length + dataSize;
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

/** log-ring.L2 */
function snapshot(data: object): { readonly kept: KeptLine["data"]; readonly size: number } {
  try {
    const text = JSON.stringify(plainJson(data));
    if (text.length <= MAX_DATA) return { kept: JSON.parse(text) as KeptLine["data"], size: text.length };
    return { kept: { leftOut: `${text.length} characters` }, size: 0 };
  } catch {
    return { kept: { leftOut: "The data cannot be written as JSON." }, size: 0 };
  }
}
