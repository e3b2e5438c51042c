// Where code waits that waits for nothing of ours.
//
// A function that waits has no stack one could ask for. So its journal is replayed once more, and the place of every
// promise its code makes is noted: an `await` makes one too, and the last is where it stands. Done only for a run that is
// about to be stopped: noting is slow, for the whole process.

import { AsyncLocalStorage, createHook } from "node:async_hooks";
import type { Timers } from "../base/index.ts";
import type { Execution } from "./execution.ts";
import { findUserPlace } from "./places.ts";
import type { Recorded } from "./recorded.ts";
import { driveThrough } from "./replay.ts";

const watched = new AsyncLocalStorage<Execution>();

/** Undefined when nothing of the user's code was seen. */
export async function findStall(execution: Execution, recorded: Recorded, timers: Timers): Promise<string | undefined> {
  let last: string | undefined;
  const init = (_id: number, type: string): void => {
    // Other runs go on meanwhile.
    if (type === "PROMISE" && watched.getStore() === execution) last = findUserPlace(init) ?? last;
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
