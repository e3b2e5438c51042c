// @ts-nocheck
// Statement context: what row statements share, and how a function over rows becomes a `Statement` of the rules.

import { InvariantError } from "../../../base/index.ts";
import type { Write } from "../../../kernel/index.ts";
import type { Bound, Statement } from "../../rules/statements.ts";
import type { Lock } from "../query.ts";
import type { TableName } from "../../rows/tables.ts";
import type { WorkingSet } from "../working-set.ts";

/** `write` locks the runs it changes. `claim` takes unlocked rows and never waits. `read` locks nothing. */
export type AccessMode = "write" | "claim" | "read";

export interface StatementContext {
  readonly ws: WorkingSet;
  readonly mode: AccessMode;
  /** The claims of the list: rows are looked up by their names, where SQLite first lists the names that exist. */
  writes: readonly Write[];
  /** The lock for reading a row of a table. */
  readonly lock: (table: TableName) => Lock;
}

/**
 * The lock for reading a row. Tables that are not listed change only under the lock of their run's row, or of their queue's row
 * (`begun`, `lanes`). A deleted worker row is never created again: a check whether it exists needs no lock, and a claim takes a
 * share lock to prevent its deletion.
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
  throw new InvariantError("A row statement is called with a method it does not support.");
}

const UNSUPPORTED: Statement = { get: unsupported, all: unsupported, run: unsupported };

/** A statement that returns rows; `get` returns the first. */
export function rows(all: Body<readonly unknown[]>): Statement {
  const body = all as (...values: Bound[]) => unknown[];
  return { ...UNSUPPORTED, all: body, get: (...values) => body(...values)[0] };
}

/** A statement that returns one row or none. */
export function one(get: Body<unknown>): Statement {
  const body = get as (...values: Bound[]) => unknown;
  return {
    ...UNSUPPORTED,
    get: body,
    all: (...values) => {
      const row = body(...values);
      return row === undefined ? [] : [row];
    },
  };
}

/** A statement that tests existence, as `select 1` does. */
export function exists(found: Body<boolean>): Statement {
  return one(((...values: never[]) => (found(...values) ? PRESENT : undefined)) as Body<unknown>);
}

const PRESENT = { 1: 1 };

/** A change that returns its number of rows. */
export function change(run: Body<number>): Statement {
  const body = run as (...values: Bound[]) => number;
  return { ...UNSUPPORTED, run: (...values) => ({ changes: body(...values), lastInsertRowid: 0 }) };
}

/** A change without a count. */
export function effect(run: Body<void>): Statement {
  const body = run as (...values: Bound[]) => void;
  return {
    ...UNSUPPORTED,
    run: (...values) => {
      body(...values);
      return UNCOUNTED;
    },
  };
}

export const UNCOUNTED = { changes: 1, lastInsertRowid: 0 };
