// Notes: a user's table `notes (text)`, used through the handle that ctx.tx passes to its function. The conformance cases use it to
// test that user SQL and Reprise's own commit together or not at all.

import type { MysqlHandle } from "../mysql/user-handle.ts";
import type { PostgresHandle } from "../postgres/user-handle.ts";
import type { SqliteHandle } from "../sqlite/sqlite-user-sql.ts";

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
    // MySQL commits the transaction when it creates a table: the scratch store creates the table before.
    create: () => undefined,
    insert: (db, text) => (db as MysqlHandle).query("insert into notes values (?)", [text]),
    texts: async (db) => (await (db as MysqlHandle).query<Row>(SELECT)).rows.map(({ text }) => text),
  },
};
