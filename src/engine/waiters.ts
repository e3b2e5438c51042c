// Waiters: who waits for the end of which run. News comes from this process's worker, or from a look at the store.

import type { EndEntry, RunRecord } from "../kernel/index.ts";
import { Listeners } from "./listeners.ts";

/** How a run stands, with the entry that ended it. */
export interface Ending {
  readonly record: RunRecord;
  readonly last: EndEntry | undefined;
}

/** Told once; `undefined` when no news will ever come. */
export class Waiters extends Listeners<(ending: Ending | undefined) => void> {
  tell(id: string, ending: Ending | undefined): void {
    for (const tell of this.take(id)) tell(ending);
  }

  close(): void {
    for (const id of this.ids) this.tell(id, undefined);
  }
}
