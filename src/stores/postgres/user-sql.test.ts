import { expect, test } from "vitest";
import { objectionTo } from "./user-sql.ts";

const allows = (sql: string): boolean => objectionTo(sql, "reprise") === undefined;

test("ordinary statements may run in ctx.tx", () => {
  for (const sql of [
    "select 1",
    "insert into visits values ($1, $2)",
    "with x as (select 1) update t set a = 1",
    "savepoint a",
    "release savepoint a",
    "rollback to a",
    "rollback to savepoint a",
    "rollback work to a",
    "set local statement_timeout = 5",
    "set constraints all deferred",
    "create table t (a int)",
    "notify someone",
    "/* commit */ select 1 -- rollback",
    "select 'commit; reprise.runs' , E'it\\'s reprise.runs', $$ reprise.runs $$, $a$ $$ reprise.runs $a$",
    "select reprise from t",
    'select "Reprise".x from "Reprise"',
    "",
  ])
    expect([sql, allows(sql)]).toEqual([sql, true]);
});

test("SQL that ends the transaction, outlives it or uses Reprise's schema is refused", () => {
  for (const sql of [
    "commit",
    "  ROLLBACK ",
    "/* a /* nested */ comment */ commit",
    "-- comment\ncommit",
    "end",
    "abort",
    "begin",
    "start transaction",
    "rollback and chain",
    "prepare transaction 'x'",
    "prepare x as select 1",
    "execute x",
    "deallocate all",
    "discard all",
    "reset all",
    "set role other",
    "set session statement_timeout = 0",
    "set search_path = x",
    "listen x",
    "unlisten *",
    "copy t from stdin",
    "create temp table t (a int)",
    "create local temporary table t (a int)",
    "create or replace temp view v as select 1",
    "select * from reprise.runs",
    'delete from "reprise"."runs"',
    "select * from REPRISE . runs",
    "select 'a' 'b', * from /* x */ reprise/* y */.runs",
    "with x as (delete from reprise.runs) select 1",
  ])
    expect([sql, allows(sql)]).toEqual([sql, false]);
});
