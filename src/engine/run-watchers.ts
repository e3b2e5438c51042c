// RunWatchers: the readers that read a run again whenever it may have changed. Commits of this process notify them at
// once, those of other processes when the store is polled; a reader then reads the store to see what changed.

import { RunSubscriptions } from "./run-subscriptions.ts";

export class RunWatchers extends RunSubscriptions<() => void> {
  /** The run changed. Costs nothing while there are no watchers. */
  notify(id: string): void {
    if (this.isEmpty) return;
    for (const notify of this.subscribersOf(id)) notify();
  }

  /** Any run may have changed, or the engine closes. */
  notifyAll(): void {
    for (const id of this.ids) this.notify(id);
  }
}
