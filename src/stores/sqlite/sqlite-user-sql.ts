// User SQL: a handle on our own connection that can do everything but end the transaction it is in, or touch our tables.
//
// Z1. The handle, and every statement made with it, works while its function runs and never again.
// Z2. Every statement first looks whether the transaction is still ours: `insert or rollback` and `raise(rollback)` end it,
//     and what came after would be committed by itself.
// Z3. SQLite asks the authorizer when a statement is compiled. It is set once per connection, because setting it makes
//     SQLite compile all our statements anew, and passes everything while no user SQL runs.

import { constants, type DatabaseSync, type StatementSync } from "node:sqlite";
import { isThenable, RepriseError } from "../../base/index.ts";
import { MIGRATIONS } from "./schema.ts";

export type SqliteHandle = Pick<DatabaseSync, "prepare" | "exec">;

const OUR_TABLES: ReadonlySet<string> = new Set(
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

/** What belongs to the connection, not to the transaction. */
const FORBIDDEN: ReadonlyMap<number, string> = new Map([
  [constants.SQLITE_TRANSACTION, "begins or ends a transaction; it is one already, and ends with the function"],
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
  // Full text search asks for this one by itself.
  if (action === constants.SQLITE_PRAGMA)
    return first === "data_version" ? undefined : "sets or reads a pragma of the connection";
  if (action === constants.SQLITE_FUNCTION)
    return second?.startsWith("reprise_") === true ? `calls ${second}, a function of Reprise's own` : undefined;
  const table = args[TABLE_AT.get(action) ?? -1]?.toLowerCase();
  return table !== undefined && OUR_TABLES.has(table)
    ? `touches ${table}, a table of Reprise's own; give yours another name`
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

  /** Calls `use` with a handle (Z1), inside the transaction that is open. */
  call(use: (db: SqliteHandle) => unknown): unknown {
    this.#guard();
    let over = false;
    const checked = <T>(what: string, act: () => T): T => {
      if (over) throw new RepriseError("USAGE", `${what} was called after its ctx.tx had ended. Prepare it anew.`);
      this.#checkOurs();
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
      this.#checkOurs();
      return result;
    } finally {
      over = true;
      this.#running = false;
    }
  }

  /** Z3 */
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

  /** Z2 */
  #checkOurs(): void {
    if (!this.#db.isTransaction)
      throw new RepriseError(
        "USAGE",
        "The transaction of ctx.tx was rolled back by `or rollback` or `raise(rollback)`. Use `or abort` or `raise(abort)`, and throw to roll back.",
      );
  }

  /** SQLite only says "not authorized". */
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
          // Read at once: a cursor left open could not be committed over.
          if (key === "iterate") return target.all(...(args as never[]))[Symbol.iterator]();
          return value.apply(target, args) as unknown;
        });
    },
  });
}

function notSynchronous(answer: PromiseLike<unknown>): RepriseError {
  // Whatever it still does finds its handle closed; that is no failure of the process.
  answer.then(undefined, () => undefined);
  return new RepriseError(
    "USAGE",
    "The function of ctx.tx is async; on SQLite it must answer at once. Wait before it, in ctx.run, and hand the result in.",
  );
}
