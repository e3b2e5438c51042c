// Exchange loop: keeps a site up to date in the background: its own log, pulls that wait for news, pushes after new records.
//
// exchange-loop.X1. One exchange with a peer and direction runs at a time. A wake-up while it runs makes it run once more.
// exchange-loop.X2. A failure delays the next try of that peer and direction, twice as long each time, up to a minute. No other waits.
// exchange-loop.X3. The log has one line for a failure, at most one a minute for each peer and direction, and one when it works again.
// exchange-loop.X4. `close` ends every wait and resolves when nothing runs any more.

import { backoffMs, type Clock, type Timers } from "../base/index.ts";
import type { Logger } from "../kernel/index.ts";

/** One thing to repeat: the own log, a pull, a push. */
export interface Exchange {
  /** Such as `pull hub`. */
  readonly name: string;
  /** Does it once. A pull waits in here for news. */
  run(signal: AbortSignal): Promise<void>;
  /** The pause after a success; undefined: until `wake`. */
  readonly everyMs: number | undefined;
}

const BACKOFF = { maxAttempts: 1, baseDelay: 500, maxDelay: 60_000 };
const REPORT_MS = 60_000;

interface Loop {
  readonly exchange: Exchange;
  failures: number;
  isRunning: boolean;
  isDue: boolean;
  /** Monotonic time of the last line in the log. */
  reportedAt: number | undefined;
  cancelPause: (() => void) | undefined;
}

export class ExchangeLoop {
  readonly #loops: readonly Loop[];
  readonly #timers: Timers;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(exchanges: readonly Exchange[], ports: { clock: Clock; timers: Timers; logger: Logger }) {
    this.#timers = ports.timers;
    this.#clock = ports.clock;
    this.#logger = ports.logger;
    this.#loops = exchanges.map((exchange) => ({
      exchange,
      failures: 0,
      isRunning: false,
      isDue: false,
      reportedAt: undefined,
      cancelPause: undefined,
    }));
  }

  start(): void {
    for (const loop of this.#loops) this.#run(loop);
  }

  /** There may be something to do for these; one that failed keeps its pause. */
  wake(fits: (name: string) => boolean): void {
    for (const loop of this.#loops) if (fits(loop.exchange.name) && loop.failures === 0) this.#run(loop);
  }

  #run(loop: Loop): void {
    if (this.#closing.signal.aborted) return;
    // exchange-loop.X1
    if (loop.isRunning) {
      loop.isDue = true;
      return;
    }
    loop.cancelPause?.();
    loop.isRunning = true;
    const running = this.#once(loop).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #once(loop: Loop): Promise<void> {
    const { exchange } = loop;
    loop.isDue = false;
    try {
      await exchange.run(this.#closing.signal);
      this.#onSuccess(loop);
    } catch (error) {
      this.#onFailure(loop, error);
    }
    loop.isRunning = false;
    if (loop.isDue && loop.failures === 0) this.#run(loop);
  }

  #onSuccess(loop: Loop): void {
    const { name, everyMs } = loop.exchange;
    if (loop.failures > 0) this.#logger.info(`federation: ${name} works again`);
    loop.failures = 0;
    loop.reportedAt = undefined;
    if (everyMs !== undefined) this.#pause(loop, everyMs);
  }

  /** exchange-loop.X2 */
  #onFailure(loop: Loop, error: unknown): void {
    if (this.#closing.signal.aborted) return;
    this.#pause(loop, backoffMs(BACKOFF, loop.failures, 0));
    loop.failures += 1;
    // exchange-loop.X3
    const now = this.#clock.monotonic();
    if (loop.reportedAt !== undefined && now - loop.reportedAt < REPORT_MS) return;
    loop.reportedAt = now;
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
    this.#logger.warn(`federation: ${loop.exchange.name} failed, trying again`, { code, message: String(message) });
  }

  #pause(loop: Loop, ms: number): void {
    loop.cancelPause?.();
    loop.cancelPause = this.#timers.set(ms, () => this.#run(loop));
  }

  /** exchange-loop.X4 */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const { cancelPause } of this.#loops) cancelPause?.();
    await Promise.all(this.#running);
  }
}
