// Debug stops: the functions in which `reprise debug` stops. Their arguments are what the debugger shows.

import type { Delivered } from "../workflow/index.ts";

/** Stops before an entry is delivered. The code of the run continues when this function and its callers have returned. */
export function beforeDelivery(entry: Delivered): Delivered {
  // eslint-disable-next-line no-debugger -- the purpose of the command
  debugger;
  return entry;
}

/** Stops before the first line of the run's code. */
export function beforeStart<T>(run: T): T {
  // eslint-disable-next-line no-debugger -- the purpose of the command
  debugger;
  return run;
}

/** Stops when the journal has been replayed. What the code requests from now on is executed. */
export function beforeLive<T>(run: T): T {
  // eslint-disable-next-line no-debugger -- the purpose of the command
  debugger;
  return run;
}
