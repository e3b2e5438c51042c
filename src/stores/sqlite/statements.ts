// Statements: the SQL of the session itself: transactions, writers, run numbers and counts of whole tables. Everything else goes
// through the row port (sqlite-rows.ts).

import type { DatabaseSync } from "node:sqlite";
import { INCARNATION_KEY } from "../../kernel/index.ts";
import { MIRROR_KEY } from "./mirror-info.ts";
import { preparedFrom, type Prepared } from "./prepared-statements.ts";

const SQL = {
  begin: "begin immediate",
  beginReading: "begin",
  commit: "commit",
  rollback: "rollback",
  dataVersion: "pragma data_version",

  // writers (rules.A5, rules.A8)
  addWriter: "insert into writers (writer, batch, mark) values (?, ?, ?)",
  stamp: `update writers set batch = ?2, mark = ?3 where writer = ?1 and batch = ?4
    and (select value from meta where key = '${INCARNATION_KEY}') is ?5`,
  mirror: `select value from meta where key = '${MIRROR_KEY}'`,
  incarnation: `select value from meta where key = '${INCARNATION_KEY}'`,
  meta: "select value from meta where key = ?",
  deleteMeta: "delete from meta where key = ?",
  putMeta: "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
  writer: "select batch from writers where writer = ?",
  highestMark: "select max(mark) as mark from writers",
  saveMark: `insert into writers (writer, batch, mark) values ('', 0, ?)
    on conflict (writer) do update set mark = max(mark, excluded.mark)`,
  deleteWriter: "delete from writers where writer = ?",
  deleteOldWriters: "delete from writers where writer <> '' and mark < ?",

  // run numbers
  highestRun: `select max(coalesce((select max(run) from runs), 0),
    coalesce((select cast(value as integer) from meta where key = 'highest run'), 0)) as run`,
  saveHighestRun: `insert into meta (key, value) values ('highest run', cast(cast(? as integer) as text))
    on conflict (key) do update set value = excluded.value`,

  // counts of whole tables, for people
  runsFrom: "select run from runs where run >= ?1 order by run limit 1 offset ?2",
  countStatuses: "select status, count(*) as count from runs where run >= ? and run < ? group by status",
  countOutgoing: `select destination, count(*) as pending, count(*) filter (where attempt > 0) as failing,
      max(attempt) as attempts, min(sent_at) as oldestAt
    from outbox group by destination order by destination`,
} as const;

export type Statements = Prepared<keyof typeof SQL>;

const prepared = preparedFrom(SQL);

export function prepareStatements(db: DatabaseSync): Statements {
  return prepared((_, text) => db.prepare(text));
}
