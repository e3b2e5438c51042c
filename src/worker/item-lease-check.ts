// ItemLeaseCheck: aborts running tasks whose items were dropped, or taken over by another worker.

import { CancelledError, type Timers } from "../base/index.ts";
import type { RunNumber, Store } from "../kernel/index.ts";
import type { TaskPool } from "./task-pool.ts";

export interface ItemLeaseCheckHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly tasks: TaskPool;
  /** The lost task was claimed eagerly, by its own run. */
  onLocalTaskLost(run: RunNumber): void;
  report(error: unknown): void;
}

/** Other processes may write at any rate; the worker checks its items at most this often. */
const CHECK_ITEMS_MS = 250;

export class ItemLeaseCheck {
  readonly #host: ItemLeaseCheckHost;
  #isDue = false;
  #checkedAt = 0;

  constructor(host: ItemLeaseCheckHost) {
    this.#host = host;
  }

  /** Another process wrote to the store. */
  schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const { store, timers } = this.#host;
    const wait = Math.max(0, this.#checkedAt + CHECK_ITEMS_MS - store.now());
    const check = (): void => {
      this.#isDue = false;
      this.#checkedAt = store.now();
      this.#check().catch((error: unknown) => this.#host.report(error));
    };
    if (wait === 0) check();
    else timers.set(wait, check, { ref: false });
  }

  /** An item whose token changed was dropped or taken over: its function is aborted. */
  async #check(): Promise<void> {
    const { tasks, store } = this.#host;
    const items = tasks.items();
    if (items.length === 0) return;
    const tokens = await store.readItemTokens(items);
    items.forEach((item, index) => {
      if (tokens[index] === item.token) return;
      const lost = tasks.abandonItem(
        item,
        () => new CancelledError("The run no longer waits for this task, or another worker took it over."),
      );
      if (lost?.local === true) this.#host.onLocalTaskLost(item.run);
    });
  }
}
