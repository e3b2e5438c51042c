// SQLite user SQL: the handle for the function of ctx.tx. It uses the store's connection, and can neither end the transaction nor
// access Reprise's tables.
//
// sqlite-user-sql.Z1. The handle and its statements work only while their function runs.
// sqlite-user-sql.Z2. Every statement first checks that the transaction is still open: `insert or rollback` and `raise(rollback)` end
//   it, and later statements would commit on their own.
// sqlite-user-sql.Z3. SQLite calls the authorizer when it compiles a statement. The authorizer is set once per connection, because
//   setting it makes SQLite compile all statements again. It allows everything while no user SQL runs.

import { constants, type DatabaseSync, type StatementSync } from "node:sqlite";
import { isThenable, RepriseError } from "../../base/index.ts";
import { MIGRATIONS } from "./schema.ts";

export type SqliteHandle = Pick<DatabaseSync, "prepare" | "exec">;

const REPRISE_TABLES: ReadonlySet<string> = new Set(
  MIGRATIONS.flatMap((sql) => Array.from(sql.matchAll(/create table (\w+)/g), ([, table = ""]) => table)),
);

/** Which of an action's first two arguments names a table. */
const TABLE_AT: ReadonlyMap<number, 0 | 1> = new Map<number, 0 | 1>([
  [constants.SQLITE_INSERT, 0],
  [constants.SQLITE_UPDATE, 0],
  [constants.SQLITE_DELETE, 0],
  [constants.SQLITE_READ, 0],
  [constants.SQLITE_CREATE_TABLE, 0],
  [constants.SQLITE_CREATE_VIEW, 0],
  [constants.SQLITE_CREATE_VTABLE, 0],
  [constants.SQLITE_DROP_TABLE, 0],
  [constants.SQLITE_ALTER_TABLE, 1],
  [constants.SQLITE_CREATE_INDEX, 1],
  [constants.SQLITE_DROP_INDEX, 1],
  [constants.SQLITE_CREATE_TRIGGER, 1],
  [constants.SQLITE_DROP_TRIGGER, 1],
]);

/** Actions that change the connection, not only the transaction. */
const FORBIDDEN: ReadonlyMap<number, string> = new Map([
  [constants.SQLITE_TRANSACTION, "begins or ends a transaction: ctx.tx does both"],
  [constants.SQLITE_ATTACH, "attaches a database"],
  [constants.SQLITE_DETACH, "detaches a database"],
  [constants.SQLITE_CREATE_TEMP_TABLE, "makes something temporary, which would outlive the transaction"],
  [constants.SQLITE_CREATE_TEMP_VIEW, "makes something temporary, which would outlive the transaction"],
  [constants.SQLITE_CREATE_TEMP_INDEX, "makes something temporary, which would outlive the transaction"],
  [constants.SQLITE_CREATE_TEMP_TRIGGER, "makes something temporary, which would outlive the transaction"],
]);

function objectionTo(action: number, args: readonly (string | null)[]): string | undefined {
  const forbidden = FORBIDDEN.get(action);
  if (forbidden !== undefined) return forbidden;
  const [first, second] = args;
  // Full-text search reads this pragma internally.
  if (action === constants.SQLITE_PRAGMA)
    return first === "data_version" ? undefined : "sets or reads a pragma of the connection";
  if (action === constants.SQLITE_FUNCTION)
    return second?.startsWith("reprise_") === true ? `calls ${second}, an internal function of Reprise` : undefined;
  const table = args[TABLE_AT.get(action) ?? -1]?.toLowerCase();
  return table !== undefined && REPRISE_TABLES.has(table)
    ? `uses ${table}, a table of Reprise. Give your table another name`
    : undefined;
}

/** One per connection. */
export class UserSql {
  readonly #db: DatabaseSync;
  #guarded = false;
  #running = false;
  #objection: string | undefined;

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Calls `use` with a handle (sqlite-user-sql.Z1), inside the open transaction. */
  call(use: (db: SqliteHandle) => unknown): unknown {
    this.#guard();
    let isOver = false;
    const checked = <T>(what: string, act: () => T): T => {
      if (isOver)
        throw new RepriseError(
          "USAGE",
          `${what} was called after the function of its ctx.tx had returned. Prepare and run statements inside the function.`,
        );
      this.#checkTransaction();
      return this.#explained(act);
    };
    this.#running = true;
    try {
      const result = use({
        prepare: (sql) =>
          guardedStatement(
            checked("prepare", () => this.#db.prepare(sql)),
            checked,
          ),
        exec: (sql) => checked("exec", () => this.#db.exec(sql)),
      });
      if (isThenable(result)) throw notSynchronous(result);
      this.#checkTransaction();
      return result;
    } finally {
      isOver = true;
      this.#running = false;
    }
  }

  /** sqlite-user-sql.Z3 */
  #guard(): void {
    if (this.#guarded) return;
    this.#db.setAuthorizer((action, ...args) => {
      if (!this.#running) return constants.SQLITE_OK;
      const objection = objectionTo(action, args);
      if (objection === undefined) return constants.SQLITE_OK;
      this.#objection = objection;
      return constants.SQLITE_DENY;
    });
    this.#guarded = true;
  }

  /** sqlite-user-sql.Z2 */
  #checkTransaction(): void {
    if (!this.#db.isTransaction)
      throw new RepriseError(
        "USAGE",
        "`or rollback` or `raise(rollback)` ended the transaction of ctx.tx. Use `or abort` or `raise(abort)`. To roll back, throw an error from the function.",
      );
  }

  /** SQLite's own message is only "not authorized". */
  #explained<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      const objection = this.#takeObjection();
      if (objection === undefined) throw error;
      throw new RepriseError("USAGE", `ctx.tx refuses SQL that ${objection}.`, { cause: error });
    }
  }

  #takeObjection(): string | undefined {
    const objection = this.#objection;
    this.#objection = undefined;
    return objection;
  }
}

type Checked = <T>(what: string, act: () => T) => T;

function guardedStatement(statement: StatementSync, checked: Checked): StatementSync {
  return new Proxy(statement, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown =>
        checked(String(key), () => {
          // Reads all rows: COMMIT fails while a cursor is open.
          if (key === "iterate") return target.all(...(args as never[]))[Symbol.iterator]();
          return value.apply(target, args) as unknown;
        });
    },
  });
}

function notSynchronous(answer: PromiseLike<unknown>): RepriseError {
  // The promise may still reject, because its handle is closed: that must not be an unhandled rejection.
  answer.then(undefined, () => undefined);
  return new RepriseError(
    "USAGE",
    "The function of ctx.tx returned a promise; on SQLite it must be synchronous. Await before it, in ctx.run, and use the result in the function.",
  );
}
