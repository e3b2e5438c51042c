// ItemLeaseCheck: aborts running tasks whose items were dropped, or taken over by another worker.

import { CancelledError } from "../base/index.ts";
import type { PartsOf } from "./worker-parts.ts";

/** Other processes may write at any rate; the worker checks its items at most this often. */
const CHECK_ITEMS_MS = 250;

type UsedParts = PartsOf<"log" | "runs" | "store" | "tasks" | "timers">;

export class ItemLeaseCheck {
  readonly #parts: UsedParts;
  #isDue = false;
  #checkedAt = 0;

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** Another process wrote to the store. */
  schedule(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    const { store, timers, log } = this.#parts;
    const wait = Math.max(0, this.#checkedAt + CHECK_ITEMS_MS - store.now());
    const check = (): void => {
      this.#isDue = false;
      this.#checkedAt = store.now();
      this.#check().catch((error: unknown) => log.report(error));
    };
    if (wait === 0) check();
    else timers.set(wait, check, { ref: false });
  }

  /** An item whose token changed was dropped or taken over: its function is aborted. */
  async #check(): Promise<void> {
    const { tasks, store, runs } = this.#parts;
    const items = tasks.items();
    if (items.length === 0) return;
    const tokens = await store.readItemTokens(items);
    items.forEach((item, index) => {
      if (tokens[index] === item.token) return;
      const lost = tasks.abandonItem(
        item,
        () => new CancelledError("The run no longer waits for this task, or another worker took it over."),
      );
      if (lost?.isLocal === true) runs.find(item.run)?.onLocalTaskGone();
    });
  }
}
