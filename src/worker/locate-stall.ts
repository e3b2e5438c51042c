// Locates where the code of a stalled run waits for something the engine does not control, before the run is stopped.

import type { Timers } from "../base/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import {
  findStall,
  indexJournal,
  readHistory,
  stalled,
  type Execution,
  type RecordedJournal,
} from "../workflow/index.ts";

/** Adds the location to the execution's stop, if a replay finds it; never throws. */
export async function locateStall(
  { store, timers }: { readonly store: Store; readonly timers: Timers },
  record: RunRecord,
  execution: Execution,
  again: (recorded: RecordedJournal) => Execution,
): Promise<void> {
  try {
    const recorded = indexJournal(await readHistory(store, record.run));
    const place = await findStall(again(recorded), recorded, timers);
    execution.stop = stalled(execution.body.name, execution.commands.last, place);
  } catch {
    // The run stops without the location.
  }
}
