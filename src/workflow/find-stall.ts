// Find stall: the source location where code waits for a promise that the engine does not own.
//
// A suspended function has no stack. The journal is replayed again while an async hook notes the location of every promise
// that the code creates; an `await` creates one, and the last one is where the code waits. The hook slows down the whole
// process, so this runs only for a run that is about to be stopped.

import { AsyncLocalStorage, createHook } from "node:async_hooks";
import type { Timers } from "../base/index.ts";
import type { Execution } from "./execution.ts";
import { findUserLocation } from "./source-location.ts";
import type { RecordedJournal } from "./recorded-journal.ts";
import { driveThrough } from "./replay.ts";

const watched = new AsyncLocalStorage<Execution>();

/** Undefined when the hook saw no user code. */
export async function findStall(
  execution: Execution,
  recorded: RecordedJournal,
  timers: Timers,
): Promise<string | undefined> {
  let last: string | undefined;
  const init = (_id: number, type: string): void => {
    // Other runs execute meanwhile.
    if (type === "PROMISE" && watched.getStore() === execution) last = findUserLocation(init) ?? last;
  };
  const hook = createHook({ init });
  hook.enable();
  try {
    await watched.run(execution, () => driveThrough(execution, recorded, timers));
    return last;
  } finally {
    hook.disable();
  }
}
