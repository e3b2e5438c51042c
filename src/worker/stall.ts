// A run that waits for nothing of ours is about to be stopped: where in its code does it wait?

import type { Timers } from "../base/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import { findStall, indexJournal, stalled, type Execution, type Recorded } from "../workflow/index.ts";

/** Puts the place into the execution's stop, if it can be found; never throws. */
export async function locateStall(
  { store, timers }: { readonly store: Store; readonly timers: Timers },
  record: RunRecord,
  execution: Execution,
  again: (recorded: Recorded) => Execution,
): Promise<void> {
  try {
    const recorded = indexJournal(await store.readJournal(record.run, 0));
    const place = await findStall(again(recorded), recorded, timers);
    execution.stop = stalled(execution.body.name, execution.commands.last, place);
  } catch {
    // It is stopped all the same, by what is known already.
  }
}
