// Statements by name, each prepared when it is first used: preparing all of some hundred takes longer than most commands
// and tests use them for.

import type { StatementSync } from "node:sqlite";

export type Prepared<K extends string> = Readonly<Record<K, StatementSync>>;

const MADE = Symbol("made");
const PREPARE = Symbol("prepare");

/** One class for all connections, so that on the hot path a statement is found as fast as a property. */
export function preparedFrom<K extends string>(
  texts: Readonly<Record<K, string>>,
): (prepare: (name: K, text: string) => StatementSync) => Prepared<K> {
  const names = Object.keys(texts) as K[];
  class OfConnection {
    readonly [MADE]: (StatementSync | undefined)[] = names.map(() => undefined);
    readonly [PREPARE]: (name: K, text: string) => StatementSync;

    constructor(prepare: (name: K, text: string) => StatementSync) {
      this[PREPARE] = prepare;
    }
  }
  for (const [index, name] of names.entries())
    Object.defineProperty(OfConnection.prototype, name, {
      get(this: OfConnection): StatementSync {
        return (this[MADE][index] ??= this[PREPARE](name, texts[name]));
      },
    });
  return (prepare) => new OfConnection(prepare) as unknown as Prepared<K>;
}
