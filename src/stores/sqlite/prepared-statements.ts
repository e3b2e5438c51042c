// Prepared statements: prepares each statement when it is first used. Preparing all of them takes longer than most commands and
// tests run.

import type { StatementSync } from "node:sqlite";

export type Prepared<K extends string> = Readonly<Record<K, StatementSync>>;

const PREPARED_BY_INDEX = Symbol("prepared");
const PREPARE = Symbol("prepare");

/** One class for all connections, so that the hot path reads a statement as fast as a property. */
export function preparedFrom<K extends string>(
  texts: Readonly<Record<K, string>>,
): (prepare: (name: K, text: string) => StatementSync) => Prepared<K> {
  const names = Object.keys(texts) as K[];
  class ConnectionStatements {
    readonly [PREPARED_BY_INDEX]: (StatementSync | undefined)[] = names.map(() => undefined);
    readonly [PREPARE]: (name: K, text: string) => StatementSync;

    constructor(prepare: (name: K, text: string) => StatementSync) {
      this[PREPARE] = prepare;
    }
  }
  for (const [index, name] of names.entries())
    Object.defineProperty(ConnectionStatements.prototype, name, {
      get(this: ConnectionStatements): StatementSync {
        return (this[PREPARED_BY_INDEX][index] ??= this[PREPARE](name, texts[name]));
      },
    });
  return (prepare) => new ConnectionStatements(prepare) as unknown as Prepared<K>;
}
