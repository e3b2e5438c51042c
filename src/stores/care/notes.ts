// Notes: a table `notes (text)` of a user's, made and used with the handle that the function of ctx.tx is given. For trials of
// whether user SQL and our own stand or fall together.

import type { MysqlHandle } from "../mysql/user-handle.ts";
import type { PostgresHandle } from "../postgres/user-handle.ts";
import type { SqliteHandle } from "../sqlite/user-sql.ts";

export interface Notes {
  create(db: unknown): unknown;
  insert(db: unknown, text: string): unknown;
  texts(db: unknown): readonly string[] | Promise<readonly string[]>;
}

interface Row {
  readonly text: string;
}

const SELECT = "select text from notes";

export const NOTES: Readonly<Record<"sqlite" | "postgres" | "mysql", Notes>> = {
  sqlite: {
    create: (db) => (db as SqliteHandle).exec("create table notes (text text not null)"),
    insert: (db, text) => void (db as SqliteHandle).prepare("insert into notes values (?)").run(text),
    texts: (db) =>
      (db as SqliteHandle)
        .prepare(SELECT)
        .all()
        .map((row) => String(row["text"])),
  },
  postgres: {
    create: (db) => (db as PostgresHandle).query("create table notes (text text not null)"),
    insert: (db, text) => (db as PostgresHandle).query("insert into notes values ($1)", [text]),
    texts: async (db) => (await (db as PostgresHandle).query<Row>(SELECT)).rows.map(({ text }) => text),
  },
  mysql: {
    // A table cannot be made inside a transaction here; whoever tries has made it before.
    create: () => undefined,
    insert: (db, text) => (db as MysqlHandle).query("insert into notes values (?)", [text]),
    texts: async (db) => (await (db as MysqlHandle).query<Row>(SELECT)).rows.map(({ text }) => text),
  },
};
