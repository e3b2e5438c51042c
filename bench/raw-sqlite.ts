// Raw limit on SQLite: the rows that a workload wrote, written again by a plain loop to a new database with the same tables,
// indexes and pragmas. No fences, no reads, no encoding, no hashing, no event loop: the limit of SQLite and the disk.
//
// The loop writes journal rows in order; a run's row with its first entry, and again once for each run in a
// batch; for tasks, the queue row, inserted with TaskScheduled and deleted with its end; for graphs, the checkpoint of
// each step; for flows, the queue row of each node, and for each arrival its row and the counter's row.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { performance } from "node:perf_hooks";
import { TOKEN, type BenchDatabase, type JournalRow, type Position, type Written } from "./database.ts";
import { percentile } from "./statistics.ts";

type Row = Record<string, SQLInputValue>;
type SqliteWritten = Written<Row> & { readonly schema: readonly string[] };

/** A file in its own folder. */
export function sqliteDatabase(): BenchDatabase {
  const folder = mkdtempSync(join(tmpdir(), "reprise-bench-"));
  const path = join(folder, "bench.db");
  return {
    kind: "sqlite",
    url: `sqlite:${path}`,
    folder,
    usage: () => ({ cpuMs: 0, peakRssMb: 0 }),
    position: async () => positionOf(path),
    measureRaw: async (since, limits) => {
      const written = readWritten(path, since);
      return limits(written.journal.length).map(({ batchSize, maxRows }) =>
        measureRaw(join(folder, "raw.db"), written, batchSize, maxRows),
      );
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function positionOf(path: string): Position {
  return reading(path, (db) => {
    const { lastRow } = db.prepare("select coalesce(max(rowid), 0) as lastRow from journal").get() as {
      lastRow: number;
    };
    const { bytes } = db
      .prepare("select page_count * page_size as bytes from pragma_page_count, pragma_page_size")
      .get() as { bytes: number };
    return { lastRow, bytes };
  });
}

function readWritten(path: string, since: Position): SqliteWritten {
  return reading(path, (db) => {
    const objects = db
      .prepare("select sql from sqlite_schema where sql is not null and name not like 'sqlite_%' order by rowid")
      .all() as { sql: string }[];
    const journal = db
      .prepare(`select ${columnsOf(db, "journal").map(asText).join(", ")} from journal where rowid > ? order by rowid`)
      .all(since.lastRow) as unknown as JournalRow<Row>[];
    const run = db.prepare("select * from runs where run = ?");
    const numbers = new Set(journal.map((row) => row.run));
    const checkpoint = db.prepare(
      `select ${columnsOf(db, "checkpoints").map(asText).join(", ")} from checkpoints where run = ?`,
    );
    const checkpointsOf = (number: number): Map<number, Row> =>
      new Map((checkpoint.all(number) as Row[]).map((row) => [row["seq"] as number, row]));
    const arrival = db.prepare("select * from arrivals where run = ?");
    const arrivalsOf = (number: number): Map<number, Row[]> =>
      Map.groupBy(arrival.all(number) as Row[], (row) => row["seq"] as number);
    const isFlow = journal.some(({ type, command }) => type === "NodeCompleted" && !command.startsWith("Node("));
    const isGraph = journal.some(({ type }) => type === "StepCommitted");
    return {
      schema: objects.map(({ sql }) => sql),
      journal,
      runs: new Map(Array.from(numbers, (number) => [number, run.get(number) as Row])),
      checkpoints: new Map(isGraph ? Array.from(numbers, (number) => [number, checkpointsOf(number)]) : []),
      arrivals: new Map(isFlow ? Array.from(numbers, (number) => [number, arrivalsOf(number)]) : []),
    };
  });
}

function columnsOf(db: DatabaseSync, table: string): readonly string[] {
  return db
    .prepare("select name from pragma_table_info(?)")
    .all(table)
    .map(({ name }) => String(name));
}

const BLOBS: ReadonlySet<string> = new Set(["data", "state"]);

/** Binds as the store does, without a buffer per row. */
function asText(column: string): string {
  return BLOBS.has(column) ? `cast(${column} as text) as ${column}` : column;
}

function insertInto(db: DatabaseSync, table: string) {
  const values = columnsOf(db, table).map((column) => (BLOBS.has(column) ? "cast(? as blob)" : "?"));
  return db.prepare(`insert into ${table} values (${values.join(", ")})`);
}

function reading<T>(path: string, read: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** Journal rows per second: the median of three rounds, after a warm-up round. */
function measureRaw(path: string, written: SqliteWritten, batchSize: number, maxRows: number): number {
  const journal = written.journal.slice(0, maxRows);
  const timesMs: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const db = openBare(path, written.schema);
    const elapsedMs = writeAll(db, { ...written, journal }, batchSize);
    if (round > 0) timesMs.push(elapsedMs);
    db.close();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
  }
  return (journal.length / percentile(timesMs, 0.5)!) * 1_000;
}

function openBare(path: string, schema: readonly string[]): DatabaseSync {
  const db = new DatabaseSync(path);
  for (const pragma of [
    "wal_autocheckpoint = 4000",
    "journal_mode = wal",
    "synchronous = full",
    "fullfsync = 1",
    "checkpoint_fullfsync = 1",
  ])
    db.exec(`pragma ${pragma}`);
  for (const sql of schema) db.exec(sql);
  return db;
}

function writeAll(
  db: DatabaseSync,
  { journal, runs, checkpoints, arrivals }: SqliteWritten,
  batchSize: number,
): number {
  const columns = Object.keys(runs.values().next().value ?? {});
  const insertRun = db.prepare(
    `insert into runs (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})`,
  );
  const insertEntry = insertInto(db, "journal");
  const moveRun = db.prepare("update runs set head = ?, chain = ? where run = ?");
  const endRun = db.prepare(
    "update runs set head = ?, chain = ?, status = ?, ended_at = ?, turn_token = null, turn_worker = null where run = ?",
  );
  const insertItem = db.prepare(
    `insert into queue (run, item, kind, name, priority, available_at, seq, state, token, worker)
      values (?, ?, 'task', 'work', 0, ?, ?, 2, ?, 1)`,
  );
  const dropItem = db.prepare("delete from queue where run = ? and item = ?");
  const insertCheckpoint = insertInto(db, "checkpoints");
  const insertArrival = insertInto(db, "arrivals");
  const countArrival = db.prepare(
    "insert into readiness (run, node, required, completed) values (?, ?, 1, 1) on conflict do update set completed = completed + 1",
  );
  const isFlow = arrivals.size > 0;
  const begin = db.prepare("begin immediate");
  const commit = db.prepare("commit");

  const startedAt = performance.now();
  for (let from = 0; from < journal.length; from += batchSize) {
    const heads = new Map<number, JournalRow<Row>>();
    begin.run();
    for (const row of journal.slice(from, from + batchSize)) {
      const { run, seq, type, command, at } = row;
      if (seq === 1) insertRun.run(...startedRow(runs.get(run)!));
      else heads.set(run, row);
      insertEntry.run(...Object.values(row));
      if (type === "StepCommitted") insertCheckpoint.run(...Object.values(checkpoints.get(run)!.get(seq)!));
      else if (type === "TaskScheduled") insertItem.run(run, command, at, seq, TOKEN);
      else if (type === "TaskCompleted") dropItem.run(run, command);
      if (!isFlow) continue;
      if (type === "NodeCompleted") {
        insertItem.run(run, command, at, seq, TOKEN);
        dropItem.run(run, command);
      }
      for (const each of arrivals.get(run)?.get(seq) ?? []) {
        insertArrival.run(...Object.values(each));
        countArrival.run(run, each["target"]!);
      }
    }
    for (const [run, { seq, type, at }] of heads) {
      const { chain, status } = runs.get(run)!;
      if (type === "RunCompleted") endRun.run(seq, chain!, status!, at, run);
      else moveRun.run(seq, chain!, run);
    }
    commit.run();
  }
  return performance.now() - startedAt;
}

/** The row as it was when its worker started the run. */
function startedRow(run: Row): SQLInputValue[] {
  return Object.values({ ...run, status: "running", head: 1, ended_at: null, turn_token: TOKEN, turn_worker: 1 });
}
