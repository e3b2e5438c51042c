// Input change: on replay, the code passes another input than the journal recorded, and the mode lets the run continue.
//
// The next commit of the run writes an entry about it (`InputChanged`), so that it can be seen later without the code. It is not
// a command and takes no index. The same change is written once.

import type { InputChange } from "./command-matcher.ts";
import { inputChangedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";

/** command-matcher.D5 */
export function noteInputChange(execution: Execution, found: InputChange): void {
  execution.warn(found);
  if (found.isNoted) return;
  const { where: command, what, given, message } = found;
  execution.requests.push({ kind: "input-change", command, data: inputChangedData(what, given), message });
}
