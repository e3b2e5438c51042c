// Change feed: wakes long polls when the home changes.
//
// change-feed.F1. A change of this process wakes at once (`notify`). A change of another process is seen by watching the files of the home,
//   and by polling once a second where a file system does not report changes.
// change-feed.F2. One watcher for all waiters, and none while there are no waiters.
// change-feed.F3. A waiter is registered before it reads what it waits for: a change in between wakes it.

import { watch, type FSWatcher } from "node:fs";
import type { Timers } from "../../base/index.ts";

export type Wake = "changed" | "timeout" | "closed";

/** A registered waiter. */
export interface Waiter {
  readonly woken: Promise<Wake>;
  cancel(): void;
}

const POLL_MS = 1_000;

export class ChangeFeed {
  readonly #waiters = new Set<(wake: Wake) => void>();
  readonly #dir: string;
  readonly #file: string;
  readonly #timers: Timers;
  #watcher: FSWatcher | undefined;
  #stopPolling: (() => void) | undefined;
  #isNotifying = false;

  /** `file`: how the names of the files that change begin. */
  constructor(dir: string, file: string, timers: Timers) {
    this.#dir = dir;
    this.#file = file;
    this.#timers = timers;
  }

  get waiters(): number {
    return this.#waiters.size;
  }

  /** Wakes every waiter, once for all changes of this turn of the event loop. */
  notify(): void {
    if (this.#isNotifying || this.#waiters.size === 0) return;
    this.#isNotifying = true;
    this.#timers.soon(() => {
      this.#isNotifying = false;
      for (const wake of [...this.#waiters]) wake("changed");
    });
  }

  /** change-feed.F3 */
  register(ms: number, signal: AbortSignal): Waiter {
    const { promise, resolve } = Promise.withResolvers<Wake>();
    if (signal.aborted) return { woken: Promise.resolve("closed"), cancel: () => undefined };
    const end = (wake: Wake): void => {
      this.#waiters.delete(end);
      stopTimer();
      signal.removeEventListener("abort", onAbort);
      if (this.#waiters.size === 0) this.#unwatch();
      resolve(wake);
    };
    const onAbort = (): void => end("closed");
    const stopTimer = this.#timers.set(ms, () => end("timeout"));
    signal.addEventListener("abort", onAbort);
    this.#waiters.add(end);
    if (this.#waiters.size === 1) this.#watch();
    return { woken: promise, cancel: () => end("closed") };
  }

  /** change-feed.F1, change-feed.F2 */
  #watch(): void {
    const poll = (): void => {
      this.#stopPolling = this.#timers.set(POLL_MS, poll, { ref: false });
      this.notify();
    };
    this.#stopPolling = this.#timers.set(POLL_MS, poll, { ref: false });
    try {
      this.#watcher = watch(this.#dir, { persistent: false }, (_event, name) => {
        if (name === null || name.startsWith(this.#file)) this.notify();
      });
      // Without a watcher (too many of them, a removed folder) polling remains.
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      this.#watcher = undefined;
    }
  }

  #unwatch(): void {
    this.#stopPolling?.();
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}
