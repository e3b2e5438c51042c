// ItemWatch: tasks at work here whose items others have dropped or taken over.

import { CancelledError, type Timers } from "../base/index.ts";
import type { RunNumber, Store } from "../kernel/index.ts";
import type { TaskPool } from "./task-pool.ts";

export interface ItemWatchHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly tasks: TaskPool;
  /** A task that its run had claimed for this worker is gone. */
  left(run: RunNumber): void;
  failed(error: unknown): void;
}

/** Others write all the time; what is at work here is looked at this often at most. */
const CHECK_ITEMS_MS = 250;

export class ItemWatch {
  readonly #host: ItemWatchHost;
  #isDue = false;
  #lookedAt = 0;

  constructor(host: ItemWatchHost) {
    this.#host = host;
  }

  /** Somebody has written. */
  lookSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const { store, timers } = this.#host;
    const wait = Math.max(0, this.#lookedAt + CHECK_ITEMS_MS - store.now());
    const look = (): void => {
      this.#isDue = false;
      this.#lookedAt = store.now();
      this.#look().catch((error: unknown) => this.#host.failed(error));
    };
    if (wait === 0) look();
    else timers.set(wait, look, { ref: false });
  }

  /** An item whose token is gone was dropped, or taken over: its function is told. */
  async #look(): Promise<void> {
    const { tasks, store } = this.#host;
    const items = tasks.items();
    if (items.length === 0) return;
    const tokens = await store.itemTokens(items);
    items.forEach((item, index) => {
      if (tokens[index] === item.token) return;
      const lost = tasks.lose(item, () => new CancelledError("Nobody waits for this task any more."));
      if (lost?.local === true) this.#host.left(item.run);
    });
  }
}
