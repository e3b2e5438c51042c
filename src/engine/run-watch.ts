// RunWatch: one reader that waits until a run may have changed, and reads it again.

import { onAbort } from "./abort.ts";
import type { RunWatchers } from "./run-watchers.ts";

export class RunWatch implements Disposable {
  readonly #releases: readonly (() => void)[];
  #changed = Promise.withResolvers<void>();
  #isOver = false;

  /** An aborted signal ends the watch: it leaves the watchers at once, and its reader wakes up. */
  constructor(watchers: RunWatchers, id: string, signal?: AbortSignal) {
    const notify = (): void => this.#changed.resolve();
    watchers.add(id, notify);
    this.#releases = [() => watchers.remove(id, notify), onAbort(signal, () => this[Symbol.dispose]())];
    if (signal?.aborted === true) this[Symbol.dispose]();
  }

  /** Resolves when the run may have changed after this call. Call it before reading, await it after. */
  next(): Promise<void> {
    this.#changed = Promise.withResolvers();
    if (this.#isOver) this.#changed.resolve();
    return this.#changed.promise;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const release of this.#releases) release();
    this.#changed.resolve();
  }
}
