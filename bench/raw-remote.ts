// Raw limit on a server: the rows that a workload wrote, written again by a plain loop to copies of the same tables.
// A transaction is sent at once, and its response awaited before the next; many rows are one statement. No fences, no reads, no
// encoding, no hashing: what the server, the driver and the disk allow.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { TOKEN, type BenchDatabase, type JournalRow, type Position, type RawPlan, type Written } from "./database.ts";
import { mysqlSpeaker } from "./raw-mysql.ts";
import { percentile } from "./statistics.ts";
import { postgresSpeaker } from "./raw-postgres.ts";
import type { Server } from "./server.ts";
import type { Action, Row, RawDriver } from "./raw-driver.ts";

export function remoteDatabase(kind: "postgres" | "mysql", server: Omit<Server, "pid">): BenchDatabase {
  const folder = mkdtempSync(join(tmpdir(), "reprise-bench-"));
  const speaking = async <T>(work: (speaker: RawDriver) => Promise<T>): Promise<T> => {
    const speaker = await (kind === "postgres" ? postgresSpeaker(server.url) : mysqlSpeaker(server.url));
    try {
      return await work(speaker);
    } finally {
      await speaker.close();
    }
  };
  return {
    kind,
    url: server.url,
    folder,
    usage: () => server.usage(),
    position: () =>
      speaking(async (speaker) => {
        const runs = await speaker.read("runs", 0, "run");
        return { lastRow: Number(runs.at(-1)?.["run"] ?? 0), bytes: await speaker.bytes() };
      }),
    measureRaw: (since, plans) => speaking((speaker) => measureRaw(speaker, since, plans)),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function readWritten(speaker: RawDriver, { lastRow }: Position): Promise<Written<Row>> {
  // In commit order: adjacent rows belong to many runs.
  const journal = (await speaker.read("journal", lastRow, "at, seq, run")) as JournalRow<Row>[];
  const runs = new Map((await speaker.read("runs", lastRow, "run")).map((row) => [Number(row["run"]), row]));
  const isFlow = journal.some(({ type, command }) => type === "NodeCompleted" && !command.startsWith("Node("));
  const checkpoints = await speaker.read("checkpoints", lastRow, "run, step");
  const arrivals = isFlow ? await speaker.read("arrivals", lastRow, "run, target, edge, idx") : [];
  const byRun = <V>(rows: readonly Row[], of: (rows: Row[]) => V): Map<number, V> =>
    new Map(
      Array.from(
        Map.groupBy(rows, (row) => Number(row["run"])),
        ([run, some]) => [run, of(some)],
      ),
    );
  return {
    journal,
    runs,
    checkpoints: byRun(checkpoints, (rows) => new Map(rows.map((row) => [Number(row["seq"]), row]))),
    arrivals: byRun(arrivals, (rows) => Map.groupBy(rows, (row) => Number(row["seq"]))),
  };
}

/** The median of three rounds each, after a warm-up round. */
async function measureRaw(
  speaker: RawDriver,
  since: Position,
  plans: (rows: number) => readonly RawPlan[],
): Promise<readonly number[]> {
  const written = await readWritten(speaker, since);
  const limits: number[] = [];
  for (const { batchSize, maxRows } of plans(written.journal.length)) {
    const journal = written.journal.slice(0, maxRows);
    const batches: Action[][] = [];
    const counted = new Map<string, number>();
    for (let from = 0; from < journal.length; from += batchSize)
      batches.push(actionsOf(journal.slice(from, from + batchSize), written, counted));
    const timesMs: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      await speaker.copyTables();
      const startedAt = performance.now();
      for (const actions of batches) await speaker.transact(actions);
      if (round > 0) timesMs.push(performance.now() - startedAt);
    }
    limits.push((journal.length / percentile(timesMs, 0.5)!) * 1_000);
  }
  return limits;
}

/** The writes of one transaction, as in raw-sqlite.ts. */
function actionsOf(journal: readonly JournalRow<Row>[], written: Written<Row>, counted: Map<string, number>): Action[] {
  const { runs, checkpoints, arrivals } = written;
  const started: Row[] = [];
  const heads = new Map<number, JournalRow<Row>>();
  const items = new Map<string, Row>();
  const gone: Row[] = [];
  const steps: Row[] = [];
  const arrived: Row[] = [];
  const fresh = new Map<string, Row>();
  const again = new Map<string, Row>();
  for (const row of journal) {
    const { run, seq, type, command } = row;
    if (seq === 1) started.push({ ...runs.get(run)!, ...STARTED });
    else heads.set(run, row);
    if (type === "StepCommitted") steps.push(checkpoints.get(run)!.get(seq)!);
    const item = `${run} ${command}`;
    if (type === "TaskScheduled") items.set(item, itemOf(row));
    // A row that is inserted and deleted in one transaction is not written.
    else if (type === "TaskCompleted" && !items.delete(item)) gone.push({ run, item: command });
    for (const each of arrivals.get(run)?.get(seq) ?? []) {
      arrived.push(each);
      const node = `${run} ${String(each["target"])}`;
      const completed = (counted.get(node) ?? 0) + 1;
      const readiness = { ...READINESS, run, node: each["target"], completed };
      if (completed === 1 || fresh.has(node)) fresh.set(node, readiness);
      else again.set(node, readiness);
      counted.set(node, completed);
    }
  }
  const moved = Array.from(heads, ([run, { seq, type, at }]) => ({ run, seq, type, at, row: runs.get(run)! }));
  const isEnd = ({ type }: { readonly type: string }): boolean => type === "RunCompleted";
  const head = ({ run, seq, row }: (typeof moved)[number]): Row => ({ run, head: seq, chain: row["chain"] });
  return [
    { insert: "runs" as const, rows: started },
    { update: "runs" as const, columns: ["head", "chain"], rows: moved.filter((one) => !isEnd(one)).map(head) },
    {
      update: "runs" as const,
      columns: ["head", "chain", "status", "ended_at", "turn_token", "turn_worker"],
      rows: moved.filter(isEnd).map((one) => ({ ...head(one), ...ENDED, status: one.row["status"], ended_at: one.at })),
    },
    { insert: "journal" as const, rows: journal },
    { remove: "queue" as const, rows: gone },
    { insert: "queue" as const, rows: [...items.values()] },
    { insert: "checkpoints" as const, rows: steps },
    { insert: "arrivals" as const, rows: arrived },
    { insert: "readiness" as const, rows: [...fresh.values()] },
    { update: "readiness" as const, columns: ["completed"], rows: [...again.values()] },
  ].filter(({ rows }) => rows.length > 0) as Action[];
}

const STARTED = { status: "running", head: 1, ended_at: null, turn_token: TOKEN, turn_worker: 1 };
const ENDED = { turn_token: null, turn_worker: null };
const READINESS = { required: 1_000_000, queued: null, window: null, first_seq: null, per_entry: null };

function itemOf({ run, seq, command, at }: JournalRow<Row>): Row {
  const rest = { attempt: 0, takeovers: 0, failures: null, queue: null, key: null };
  const leased = { kind: "task", name: "work", priority: 0, state: 2, token: TOKEN, worker: 1 };
  return { run, item: command, available_at: at, seq, ...leased, ...rest };
}
