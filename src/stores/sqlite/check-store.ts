// Check store: checks every invariant that the data shows, run by run.
//
// A file is read through a separate connection, in one read transaction: the check sees one snapshot while other processes write.
// A store in memory has only one connection, so each run is checked without yielding to the event loop.

import type { DatabaseSync } from "node:sqlite";
import { QueueItemState, type Problem } from "../../kernel/index.ts";
import { checkRun, type CheckedRun } from "./check-run.ts";
import { CHECK_BUDGETS_SQL, checkBudgets } from "./check-budgets.ts";
import { CHECK_LOG_SQL, checkLog } from "./check-log.ts";
import { checkMemo } from "./check-memo.ts";
import { CHECK_OUTBOX_SQL, checkOutbox } from "./check-outbox.ts";
import { CHECK_SCHEDULES_SQL, checkSchedules } from "./check-schedules.ts";
import { CHECK_THREADS_SQL, checkThreads } from "./check-threads.ts";
import { CHECK_FORKS_SQL } from "./check-fork.ts";
import { CHECK_FLOWS_SQL } from "./check-flow.ts";
import { CHECK_PROMISES_SQL } from "./check-promises.ts";
import { storeErrorOf } from "./errors.ts";
import { MEMORY } from "./store-file.ts";
import { yieldToEventLoop, withRetry } from "./retry-busy.ts";
import { preparedFrom, type Prepared } from "./prepared-statements.ts";
import type { Rows } from "../rows/rows.ts";
import { RUN_TABLES, type RunTable } from "../rows/tables.ts";
import { isUnchanged, openToRead } from "./read-only-file.ts";
import { SqliteRows } from "./sqlite-rows.ts";
import type { SqliteSession } from "./sqlite-session.ts";

const BATCH = 200;
/** A damaged store may have millions of problems, which would fill memory. */
const MAX_PROBLEMS = 1_000;

/** Tables whose rows need a row in `runs`, or in `leftovers`. */
const OWNED_TABLES = RUN_TABLES.filter((table) => table !== "runs" && table !== "leftovers");

/** What messages call the rows of a table; a table that is not listed has its own name. */
const ROWS_OF: Partial<Record<RunTable, string>> = {
  journal: "Journal entries",
  queue: "Queue items",
  inbox: "Messages",
  run_promises: "Open promises",
  budget_reservations: "Reservations",
  memo: "Remembered results",
  chunks: "Stream chunks",
  run_contents: "Contents of payloads",
  emitted: "Chunk counters",
  checkpoints: "Checkpoints",
  forks: "Forks",
  ended_runs: "Notes of ends",
  arrivals: "Arrivals",
  readiness: "Readiness counters",
};

const ORPHANS_SQL = Object.fromEntries(
  OWNED_TABLES.map((table) => [
    `orphans in ${table}`,
    `select distinct run from ${table} where run > ?1 and run <= ?2
      and not exists (select 1 from runs where runs.run = ${table}.run)
      and not exists (select 1 from leftovers where leftovers.run = ${table}.run)`,
  ]),
) as Readonly<Record<`orphans in ${RunTable}`, string>>;

const SQL = {
  count: "select count(*) as count from runs",
  runs: `select run, id, kind, status, head, chain, arrivals, read, turn_due as due, turn_token as token,
      turn_worker as worker, lost_turns is null as hasUnlisted, exists (select 1 from leftovers where leftovers.run = runs.run) as leftover
    from runs where run > ? order by run limit ?`,
  items: "select item, kind, state, token, worker from queue where run = ?",
  inbox: "select count(*) as count, min(arrival) as lowest from inbox where run = ? and arrival > ?",
  chunks:
    "select stream, count(*) as count, min(position) as first, max(position) as last from chunks where run = ? group by stream",
  checkpoints: "select count(*) as count from checkpoints where run = ?",
  strayCheckpoints: "select step from checkpoints where run = ?1 and (step < ?2 or step > ?3) order by step limit 10",
  worker: "select 1 from workers where worker = ?",
  parkedKeys: `select distinct kind, queue, key from queue as parked indexed by queue_parked where state = ${QueueItemState.parked}
    and not exists (select 1 from lanes where lanes.kind = parked.kind and lanes.queue = parked.queue and lanes.key = parked.key)
    and not exists (select 1 from queue as busy indexed by queue_busy where busy.state in (${QueueItemState.leased}, ${QueueItemState.admitted}) and busy.queue is not null
      and busy.kind = parked.kind and busy.queue = parked.queue and busy.key = parked.key)`,
  readyOfKey: `select 1 from queue indexed by queue_lined
    where state = ${QueueItemState.ready} and queue is not null and kind = ? and queue = ? and key = ? limit 1`,
  integrity: "pragma integrity_check(20)",
  foreignKeys: "pragma foreign_key_check",
  ...ORPHANS_SQL,
  ...CHECK_LOG_SQL,
  ...CHECK_SCHEDULES_SQL,
  ...CHECK_OUTBOX_SQL,
  ...CHECK_THREADS_SQL,
  ...CHECK_FORKS_SQL,
  ...CHECK_FLOWS_SQL,
  ...CHECK_PROMISES_SQL,
  ...CHECK_BUDGETS_SQL,
} as const;

/** `rows`: for what has payloads, which the codec may have to decode. */
export type CheckStatements = Prepared<keyof typeof SQL> & { readonly rows: Rows };

const prepared = preparedFrom(SQL);

type Progress = (done: number, total: number) => void;

export async function checkStore(
  session: SqliteSession,
  onProgress: Progress = () => undefined,
): Promise<readonly Problem[]> {
  await session.read("Checking", () => undefined);
  const { path } = session.options;
  const { cipher } = session.connection;
  // The hash chain covers the decoded texts.
  if (cipher?.isUnlocked === false) cipher.refuse();
  if (path === MEMORY) return checkDatabase(session.connection.db, session, onProgress, async () => undefined);
  const { db, frozen } = openToRead(path);
  try {
    cipher?.register(db);
    await withRetry(session.options, "Checking", () => db.exec("begin"));
    const problems = await checkDatabase(db, session, onProgress, () => yieldToEventLoop(session.options));
    // read-only-file.V2
    if (frozen !== undefined && !isUnchanged(frozen)) return await checkStore(session, onProgress);
    return problems;
  } catch (error) {
    if (frozen !== undefined && !isUnchanged(frozen)) return await checkStore(session, onProgress);
    throw storeErrorOf(error, "Checking");
  } finally {
    db.close();
  }
}

async function checkDatabase(
  db: DatabaseSync,
  session: SqliteSession,
  onProgress: Progress,
  yieldWithinRun: () => Promise<void>,
): Promise<readonly Problem[]> {
  const { cipher } = session.connection;
  const statements = prepared((_, text) => db.prepare(text));
  const sql: CheckStatements = Object.assign(statements, {
    rows: new SqliteRows(db, cipher !== undefined, session.connection.contents, session.connection.needed),
  });
  const isMirror = session.mirror !== undefined;
  const supply: SqliteSession["supply"] = (work) => session.supply(work);
  const problems: Problem[] = [
    ...checkHealth(sql),
    ...(isMirror ? [] : checkWork(sql, session.clock.now())),
    ...(isMirror ? [] : checkBudgets(sql)),
    ...(await supply(async () => checkMemo(sql.rows))),
    ...checkLog(sql),
  ];
  const { count: total } = sql.count.get() as { count: number };
  let last = 0;
  for (let done = 0; problems.length < MAX_PROBLEMS;) {
    const runs = sql.runs.all(last, BATCH) as unknown as CheckedRun[];
    const next = runs.length < BATCH ? Number.MAX_SAFE_INTEGER : (runs.at(-1) as CheckedRun).run;
    problems.push(...findOrphans(sql, last, next));
    for (const run of runs) problems.push(...(await problemsOf(sql, run, yieldWithinRun, isMirror, supply)));
    last = next;
    done += runs.length;
    onProgress(Math.min(done, total), total);
    if (runs.length < BATCH) break;
    await yieldToEventLoop(session.options);
  }
  return problems.slice(0, MAX_PROBLEMS);
}

/** What belongs to no single run. A mirror has none of it. */
function checkWork(sql: CheckStatements, now: number): readonly Problem[] {
  return [...checkParked(sql), ...checkSchedules(sql, now), ...checkOutbox(sql, now), ...checkThreads(sql)];
}

/** A run that cannot be read is one problem; the other runs are still checked. */
async function problemsOf(
  sql: CheckStatements,
  run: CheckedRun,
  pause: () => Promise<void>,
  isMirror: boolean,
  supply: SqliteSession["supply"],
): Promise<readonly Problem[]> {
  try {
    const faults = await supply(() => checkRun(sql, run, pause, isMirror));
    return faults.map((fault) => ({ ...fault, run: run.id }));
  } catch (error) {
    const { message } = storeErrorOf(error, `Reading run ${run.id}`);
    return [{ invariant: HEALTH, run: run.id, seq: undefined, message }];
  }
}

const HEALTH = "I34 store health";

/** SQLite's own checks find damaged pages and indexes. The hash chain finds damaged payloads (rules.I8). */
function checkHealth(sql: CheckStatements): readonly Problem[] {
  const problem = (message: string): Problem => ({ invariant: HEALTH, run: undefined, seq: undefined, message });
  try {
    const lines = (sql.integrity.all() as { integrity_check: string }[]).map((row) => row.integrity_check);
    const found = lines
      .filter((line) => line !== "ok")
      .map((line) => problem(`SQLite's integrity check reports: ${line}. Restore a backup with \`reprise restore\`.`));
    for (const row of sql.foreignKeys.all())
      found.push(problem(`A foreign key refers to no row: ${JSON.stringify(row)}. Fix the row in your table.`));
    return found;
  } catch (error) {
    return [problem(storeErrorOf(error, "integrity_check").message)];
  }
}

/** An item may be parked only while its key has no free slot, is held back by its rate, or has a ready item before it. */
function checkParked(sql: CheckStatements): readonly Problem[] {
  const keys = sql.parkedKeys.all() as unknown as { kind: string; queue: string; key: string }[];
  return keys
    .filter(({ kind, queue, key }) => sql.readyOfKey.get(kind, queue, key) === undefined)
    .map(({ queue, key }) => ({
      invariant: "I36 parked items resume",
      run: undefined,
      seq: undefined,
      message: `Items with key ${key} in queue ${queue} are parked, although no limit holds them back. Set the limits of the queue again: \`reprise queue limit ${queue} …\`.`,
    }));
}

function findOrphans(sql: CheckStatements, after: number, upTo: number): readonly Problem[] {
  const found: Problem[] = [];
  for (const table of OWNED_TABLES)
    for (const { run } of sql[`orphans in ${table}`].all(after, upTo) as { run: number }[]) {
      const message = `${ROWS_OF[table] ?? `Rows of ${table}`} belong to run number ${run}, which does not exist.`;
      found.push({ invariant: "I17 no rows after the end", run: undefined, seq: undefined, message });
    }
  return found;
}
