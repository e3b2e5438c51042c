// ctx.patched: code that may change under a run that is going on.
//
// V1. The answer is true while no earlier life of the run got past this point, and is then marked in the journal; a run that
//     did go past it without a mark follows the old code. Either way the answer stands for the rest of the run.
// V2. "Past this point" means that the journal has something the code asked for further on: a command, an attempt, the end.
//     What merely arrived proves nothing: a crash may have come before the code saw it.
// V3. The mark stands before everything the new code asks for, so no crash can part them. It is no command and takes no
//     index: when the call is removed from the code, nothing is missing.

import { patchMarkedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import type { Recorded } from "./recorded.ts";
import { refuseInsideStep } from "./scope.ts";

/** What a run answered so far. */
export class Patches {
  readonly #marked: ReadonlySet<string>;
  readonly #hasEnd: boolean;
  /** Most runs ask for none. */
  #answers: Map<string, boolean> | undefined;

  constructor({ patches, end }: Recorded) {
    this.#marked = patches;
    this.#hasEnd = end !== undefined;
  }

  /** V1, V2. `isNew`: the journal does not have the mark yet. */
  answer(id: string, isBehind: () => boolean): { readonly patched: boolean; readonly isNew: boolean } {
    const before = this.#answers?.get(id);
    if (before !== undefined) return { patched: before, isNew: false };
    const isMarked = this.#marked.has(id);
    const patched = isMarked || !(this.#hasEnd || isBehind());
    (this.#answers ??= new Map()).set(id, patched);
    return { patched, isNew: patched && !isMarked };
  }
}

export function askPatched(execution: Execution, id: string): boolean {
  refuseInsideStep();
  const { patched, isNew } = execution.patches.answer(id, () => execution.commands.isBehind);
  if (isNew && execution.stop === undefined)
    execution.asks.push({ ask: "patch", command: "", data: patchMarkedData(id) });
  return patched;
}
