// Word: what a statement of SQLite is here, a function over rows.

import { InvariantError } from "../../../base/index.ts";
import type { Write } from "../../../kernel/index.ts";
import type { Bound, Statement } from "../../rules/statements.ts";
import type { Lock } from "../query.ts";
import type { TableName } from "../tables.ts";
import type { WorkingSet } from "../working-set.ts";

/**
 * `write`: under the locks of the runs it is about. `claim`: takes what is free and never waits. `read`: locks nothing.
 */
export type AccessMode = "write" | "claim" | "read";

export interface StatementContext {
  readonly ws: WorkingSet;
  readonly mode: AccessMode;
  /** What is to be claimed: looked for by name, where SQLite first asks which names there are. */
  writes: readonly Write[];
  /** How a row of a table is looked at. */
  readonly lock: (table: TableName) => Lock;
}

/**
 * What a row is looked at with. Tables that are not named change only under the lock of their run's row, or of their
 * queue's (`begun`, `lanes`). A worker's row is never made again: who only looks whether it is there need not lock it, and
 * who claims keeps it from going.
 */
const LOCKS: Readonly<Record<AccessMode, Partial<Record<TableName, Lock>>>> = {
  write: {
    runs: "update",
    queue: "update",
    queues: "update",
    schedules: "update",
    start_keys: "update",
    outbox: "update",
    leftovers: "update",
  },
  claim: { queue: "skip", outbox: "skip", workers: "share" },
  read: {},
};

export function lockOf(mode: AccessMode, table: TableName): Lock {
  return LOCKS[mode][table] ?? "none";
}

type Body<T> = (...values: never[]) => T;

function unsupported(): never {
  throw new InvariantError("A word is used in a way the rules never use it.");
}

const UNSUPPORTED: Statement = { get: unsupported, all: unsupported, run: unsupported };

/** Rows; `get` is the first. */
export function rows(all: Body<readonly unknown[]>): Statement {
  const spoken = all as (...values: Bound[]) => unknown[];
  return { ...UNSUPPORTED, all: spoken, get: (...values) => spoken(...values)[0] };
}

/** One row or none. */
export function one(get: Body<unknown>): Statement {
  const spoken = get as (...values: Bound[]) => unknown;
  return {
    ...UNSUPPORTED,
    get: spoken,
    all: (...values) => {
      const row = spoken(...values);
      return row === undefined ? [] : [row];
    },
  };
}

/** Whether there is something, as `select 1`. */
export function exists(found: Body<boolean>): Statement {
  return one(((...values: never[]) => (found(...values) ? PRESENT : undefined)) as Body<unknown>);
}

const PRESENT = { 1: 1 };

/** A change; answers how many rows. */
export function change(run: Body<number>): Statement {
  const spoken = run as (...values: Bound[]) => number;
  return { ...UNSUPPORTED, run: (...values) => ({ changes: spoken(...values), lastInsertRowid: 0 }) };
}

/** A change nobody counts. */
export function effect(run: Body<void>): Statement {
  const spoken = run as (...values: Bound[]) => void;
  return {
    ...UNSUPPORTED,
    run: (...values) => {
      spoken(...values);
      return UNCOUNTED;
    },
  };
}

export const UNCOUNTED = { changes: 1, lastInsertRowid: 0 };
