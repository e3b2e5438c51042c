// Waiters: who waits for the end of which run. News comes from this process's worker, or from a look at the store.

import { RepriseError } from "../base/index.ts";
import type { EndEntry, RunRecord } from "../kernel/index.ts";
import { Listeners } from "./listeners.ts";

/** How a run stands, with the entry that ended it. */
export interface Ending {
  readonly record: RunRecord;
  readonly last: EndEntry | undefined;
}

/** Told once; `undefined` when no news will ever come, an error when the run is gone. */
export class Waiters extends Listeners<(ending: Ending | RepriseError | undefined) => void> {
  tell(id: string, ending: Ending | RepriseError | undefined): void {
    for (const tell of this.take(id)) tell(ending);
  }

  /** True when the run that is waited for is gone, and those who wait for it got the error. */
  tellIfGone(id: string, found: RunRecord | undefined): boolean {
    const isGone = this.isGone(id, found);
    if (isGone) this.tell(id, goneError(id, found !== undefined));
    return isGone;
  }

  close(): void {
    for (const id of this.ids) this.tell(id, undefined);
  }
}

export function goneError(id: string, isAnother: boolean): RepriseError {
  const now = isAnother ? "another run has been started under its id since" : "the store has no run of this id now";
  return new RepriseError(
    "STORE_ROLLED_BACK",
    `Run ${id} is lost: the database went back to a state before its start, and ${now}. \`reprise doctor\` shows when. ${isAnother ? "Use engine.run to get the new one." : "Start it again with the same id."}`,
    { details: { run: id } },
  );
}
