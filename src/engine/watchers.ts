// Watchers: who wants to look at a run whenever it may have moved. News comes from commits of this process at once, and
// from other processes by the look-out; a watcher reads the store to see whether there is anything for it.

import { Listeners } from "./listeners.ts";

export class Watchers extends Listeners<() => void> {
  /** The run moved. Costs nothing while nobody watches anything. */
  moved(id: string): void {
    if (this.isEmpty) return;
    for (const look of this.of(id)) look();
  }

  /** Anything may have moved, or will never move again. */
  allMoved(): void {
    for (const id of this.ids) this.moved(id);
  }
}
