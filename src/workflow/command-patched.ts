// ctx.patched: lets code change while runs of it are in progress.
//
// command-patched.V1. The answer is true if no earlier execution of the run passed this point; the journal then gets a mark. A run
//   that passed it without a mark follows the old code. The answer holds for the rest of the run.
// command-patched.V2. A run has passed the point if the journal has a later request of the code: a command, an attempt, the end.
//   A message proves nothing: the process may have crashed before the code received it.
// command-patched.V3. The mark precedes every request of the new code, in the same commit. It is not a command and takes no index:
//   removing the call from the code leaves no gap.

import { patchMarkedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { refuseInsideStep } from "./scope.ts";

/** The answers that a run has given so far. */
export class Patches {
  readonly #marked: ReadonlySet<string>;
  readonly #hasEnd: boolean;
  /** Undefined in most runs. */
  #answers: Map<string, boolean> | undefined;

  constructor(marked: ReadonlySet<string>, hasEnd: boolean) {
    this.#marked = marked;
    this.#hasEnd = hasEnd;
  }

  /** command-patched.V1, command-patched.V2. `isNew`: the journal does not have the mark yet. */
  answer(id: string, isBehind: () => boolean): { readonly patched: boolean; readonly isNew: boolean } {
    const before = this.#answers?.get(id);
    if (before !== undefined) return { patched: before, isNew: false };
    const isMarked = this.#marked.has(id);
    const patched = isMarked || !(this.#hasEnd || isBehind());
    (this.#answers ??= new Map()).set(id, patched);
    return { patched, isNew: patched && !isMarked };
  }
}

export function checkPatched(execution: Execution, id: string): boolean {
  refuseInsideStep();
  const { patched, isNew } = execution.patches.answer(id, () => execution.commands.isBehind);
  if (isNew && execution.stop === undefined)
    execution.requests.push({ kind: "patch", command: "", data: patchMarkedData(id) });
  return patched;
}
