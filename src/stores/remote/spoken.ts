// Spoken: work of the rules that is not a list of writes: reaping, pruning, letting go of a worker.

import type { Tx } from "../rules/statements.ts";
import { tryWith } from "./attempt.ts";
import type { Work } from "./runner.ts";
import { wordsOf } from "./words.ts";
import type { WorkingSet } from "./working-set.ts";

export function spoken<T>(what: string, body: (tx: Tx, ws: WorkingSet) => T): Work<T> {
  return {
    what,
    isOrdered: true,
    apply: (ws, now) =>
      tryWith(ws, () => body({ sql: wordsOf(ws, "write"), now, nextRun: undefined, flows: undefined }, ws)),
  };
}
