// DifferentialStore: SQLite, and beside it the same rules over rows in memory (RowStore). Every call goes to both, and
// after each write both must have the same outcomes and the same rows in every table.

import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { leastNumberAt, type Outcome, type RunTimesFilter, type Store, type Write } from "../../../src/kernel/index.ts";
import { assemble } from "../../../src/stores/contents/run-contents.ts";
import { columnsOf, columnType, PAYLOADS, SHARED } from "../../../src/stores/rows/tables.ts";
import { idleOutcome } from "../../../src/stores/rules/apply.ts";
import { listQueues, readBacklog } from "../../../src/stores/rules/backlog.ts";
import { isPoll } from "../../../src/stores/rules/write-one-by-one.ts";
import { findCheckpoint, findLabeledCheckpoint, readCheckpoints } from "../../../src/stores/rules/checkpoints.ts";
import { countStatuses, readRunTimes } from "../../../src/stores/rules/run-counts.ts";
import { readInputs, readReadiness } from "../../../src/stores/rules/flow-reads.ts";
import {
  countVersions,
  findRun,
  readInbox,
  readItems,
  readItemTokens,
  readJournal,
  readEnd,
  readProgress,
  readSteps,
} from "../../../src/stores/rules/read.ts";
import {
  hasNothingToReap,
  listWorkers,
  readHeld,
  reap,
  registerWorker,
  releaseWorker,
  renewLease,
} from "../../../src/stores/rules/worker-leases.ts";
import { listEnded, readLog, readLogSize, readRuns } from "../../../src/stores/rules/run-log.ts";
import { readHolders } from "../../../src/stores/rules/run-holders.ts";
import { countChildren, readQueueUse, readRunWork } from "../../../src/stores/rules/run-work.ts";
import { findDueSchedules, findSchedule, listSchedules } from "../../../src/stores/rules/schedules.ts";
import { readEmitted, readStream } from "../../../src/stores/rules/streams.ts";
import type { Rows } from "../../../src/stores/rows/rows.ts";
import { inOrder, RowStore, type TableRows } from "./row-store.ts";

/** The reads of the row store. */
const READS: { readonly [K in keyof Store]?: (rows: Rows, now: number, ...args: never[]) => unknown } = {
  findRun: (rows, _now, id: string, generation?: number) => findRun(rows, id, generation),
  countVersions: (rows) => countVersions(rows),
  countStatuses: (rows, _now, upTo: number, definition?: string) => countStatuses(rows, upTo, definition),
  readRunTimes: (rows, _now, filter: RunTimesFilter) => readRunTimes(rows, filter),
  readJournal: (rows, _now, run: number, after: number, limit?: number) => readJournal(rows, run, after, limit),
  readCheckpoints: (rows, _now, run: number, after: number, limit?: number) => readCheckpoints(rows, run, after, limit),
  findCheckpoint: (rows, _now, run: number, step: number, whole: boolean) => findCheckpoint(rows, run, step, whole),
  findLabeledCheckpoint: (rows, _now, run: number, label: string, step: number) =>
    findLabeledCheckpoint(rows, run, label, step),
  readSteps: (rows, _now, run: number, after: number, upTo: number, limit?: number) =>
    readSteps(rows, run, after, upTo, limit),
  readInbox: (rows, _now, run: number, after: number) => readInbox(rows, run, after),
  readStream: (rows, _now, run: number, stream: string, after: number, limit: number) =>
    readStream(rows, run, stream, after, limit),
  readEmitted: (rows, _now, run: number) => readEmitted(rows, run),
  readInputs: (rows, _now, asked: Parameters<Store["readInputs"]>[0]) => readInputs(rows, asked),
  readReadiness: (rows, _now, run: number) => readReadiness(rows, run),
  readProgress: (rows, _now, runs: readonly number[]) => readProgress(rows, runs),
  readItemTokens: (rows, _now, items: Parameters<Store["readItemTokens"]>[0]) => readItemTokens(rows, items),
  readItems: (rows, _now, run: number, items: readonly string[]) => readItems(rows, run, items),
  findSchedule: (rows, _now, name: string) => findSchedule(rows, name),
  listSchedules: (rows, _now, after: string, limit: number) => listSchedules(rows, after, limit),
  dueSchedules: (rows, now, definitions: readonly string[], limit: number) =>
    findDueSchedules(rows, now, definitions, limit),
  listWorkers: (rows) => listWorkers(rows),
  listQueues: (rows, _now, upTo?: number) => listQueues(rows, upTo ?? Number.MAX_SAFE_INTEGER),
  readBacklog: (rows, _now, upTo?: number) => readBacklog(rows, upTo ?? Number.MAX_SAFE_INTEGER),
  readHeld: (rows, _now, worker: number) => readHeld(rows, worker),
  readRunWork: (rows, _now, run: number) => readRunWork(rows, run),
  countChildren: (rows, _now, run: number) => countChildren(rows, run),
  readQueueUse: (rows, now, kind: "task" | "start", queue: string, key?: string) =>
    readQueueUse(rows, now, kind, queue, key),
  listEnded: (rows, _now, limit: number) => listEnded(rows, limit),
  readLog: (rows, _now, after: number, limit: number) => readLog(rows, after, limit),
  logSize: (rows) => readLogSize(rows),
  readRuns: (rows, _now, runs: readonly number[]) => readRuns(rows, runs),
  readEnd: (rows, _now, run: number) => readEnd(rows, run),
  readHolders: (rows, _now, runs: readonly number[]) =>
    readHolders(rows, runs, (run, seq) => rows.get("journal", [run, seq], ["at"])?.at),
};

export class DifferentialStore {
  readonly #path: string;
  readonly #rowStore: RowStore;
  readonly #database = new Map<"db", DatabaseSync>();
  #before: Promise<unknown> = Promise.resolve();
  #isLoaded = false;
  /** The round trips of the last list. */
  rounds = 0;

  constructor(path: string, clock: { now(): number }) {
    this.#path = path;
    this.#rowStore = new RowStore(() => clock.now());
  }

  get rowStore(): RowStore {
    return this.#rowStore;
  }

  /** One call at a time: both must start from the same state. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#before.then(work, work);
    this.#before = done.catch(() => undefined);
    return done;
  }

  wrap(store: Store): Store {
    return new Proxy(store, {
      get: (target, name, receiver) => {
        const read = READS[name as keyof Store];
        const own = this.#changes(target)[name as string];
        if (own !== undefined) return (...args: never[]) => this.alone(() => own(...args));
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        if (read === undefined) return (...args: unknown[]) => this.#other(target, name as string, value, args);
        void receiver;
        return (...args: never[]) =>
          this.alone(async () => {
            const answer: unknown = await value.apply(target, args);
            this.#load();
            const same = await this.#rowStore.read((rows) => read(rows, target.now(), ...args));
            assert.deepEqual(same, answer, `${String(name)} answers otherwise`);
            return answer;
          });
      },
    });
  }

  /** Calls that the row store does not support: it copies the result. */
  #other(store: Store, name: string, value: Function, args: unknown[]): unknown {
    if (name === "announce") {
      const [subscriptions] = args as Parameters<Store["announce"]>;
      this.#rowStore.subscriptions = subscriptions.length === 0 ? undefined : subscriptions;
      return value.apply(store, args);
    }
    if (["now", "pollChanges", "info", "check", "backup", "close", "listRuns"].includes(name)) {
      if (name === "close") this.#close();
      return value.apply(store, args);
    }
    return this.alone(async () => {
      try {
        return await value.apply(store, args);
      } finally {
        this.#isLoaded = false;
      }
    });
  }

  #changes(store: Store): Record<string, ((...args: never[]) => Promise<unknown>) | undefined> {
    return {
      write: async (writes: readonly Write[]) => {
        this.#load();
        const now = store.now();
        const same = await this.#writeTwin(now, writes, await store.isFederated());
        const outcomes = await store.write(writes);
        this.rounds = this.#rowStore.rounds;
        assert.deepEqual(same, outcomes, `the rowStore answers otherwise to ${JSON.stringify(writes)}`);
        this.#compare(JSON.stringify(writes));
        return outcomes;
      },
      registerWorker: async (name: string, leaseMs: number, about?: string) => {
        this.#load();
        const worker = await store.registerWorker(name, leaseMs, about);
        const same = await this.#rowStore.transact(store.now(), (tx) =>
          registerWorker(tx, worker, name, leaseMs, about),
        );
        assert.equal(same, true);
        this.#compare("registerWorker");
        return worker;
      },
      renewLease: async (worker: number, leaseMs: number, doing?: string) => {
        this.#load();
        const renewed = await store.renewLease(worker, leaseMs, doing);
        const same = await this.#rowStore.transact(store.now(), (tx) => renewLease(tx, worker, leaseMs, doing));
        assert.equal(same, renewed);
        this.#compare("renewLease");
        return renewed;
      },
      releaseWorker: async (worker: number) => {
        this.#load();
        await store.releaseWorker(worker);
        await this.#rowStore.transact(store.now(), (tx) => releaseWorker(tx, worker));
        this.#compare("releaseWorker");
      },
      reap: async (self: number) => {
        this.#load();
        const now = store.now();
        const isIdle = await this.#rowStore.read((rows) => hasNothingToReap(rows, now, self));
        const reaped = await store.reap(self);
        const same = await this.#rowStore.transact(now, (tx) => reap(tx, self));
        this.rounds = this.#rowStore.rounds;
        assert.deepEqual(same, reaped);
        if (isIdle) assert.equal(this.#rowStore.rounds <= 3, true);
        this.#compare("reap");
        return reaped;
      },
    };
  }

  /** As stores do: a list of polls without work needs no transaction. */
  async #writeTwin(now: number, writes: readonly Write[], isFederated: boolean): Promise<readonly Outcome[]> {
    const nextRun = this.#nextRun(now);
    const idle: (Outcome | undefined)[] = [];
    for (const write of writes) idle.push(isPoll(write) ? await this.#pollIdly(now, write) : undefined);
    if (idle.every((outcome) => outcome !== undefined)) return idle;
    return this.#rowStore.write(now, nextRun, writes, isFederated);
  }

  async #pollIdly(now: number, write: Write): Promise<Outcome | undefined> {
    return this.#rowStore.read((rows) => idleOutcome(rows, now, write));
  }

  #load(): void {
    if (this.#isLoaded) return;
    this.#rowStore.load(this.#dump());
    this.#isLoaded = true;
  }

  #compare(after: string): void {
    assert.deepEqual(this.#rowStore.dump(), this.#dump(), `the rowStore has other rows after ${after}`);
  }

  #nextRun(now: number): number {
    const sql = `select max(coalesce((select max(run) from runs), 0),
      coalesce((select cast(value as integer) from meta where key = 'highest run'), 0)) as run`;
    return Math.max(Number(this.#db().prepare(sql).get()!["run"]) + 1, leastNumberAt(now));
  }

  #dump(): TableRows {
    const tables: TableRows = {};
    for (const table of SHARED) {
      const columns = columnsOf(table).map((column: string) => {
        if (table === "tags" && column === "position") return "rowid as position";
        return columnType(table, column) === "payload" ? `cast(${column} as text) as ${column}` : `"${column}"`;
      });
      tables[table] = this.#db()
        .prepare(`select ${columns.join(", ")} from ${table}`)
        .all();
    }
    return inOrder(assembled(tables));
  }

  #db(): DatabaseSync {
    let db = this.#database.get("db");
    if (db === undefined) this.#database.set("db", (db = new DatabaseSync(this.#path, { readOnly: true })));
    return db;
  }

  #close(): void {
    this.#database.get("db")?.close();
    this.#database.delete("db");
  }
}

/** The rows as the rules see them: with payloads in place of references, and without contents, which a working set does not have. */
function assembled(tables: TableRows): TableRows {
  const contents = new Map(
    tables["run_contents"]!.map((row) => [`${String(row["run"])}/${String(row["content"])}`, String(row["data"])]),
  );
  const load = (run: number, content: string): string | undefined => contents.get(`${run}/${content}`);
  const withPayloads = Object.entries(tables).map(([table, rows]) => {
    const { column, contents: use } = PAYLOADS[table as keyof typeof PAYLOADS] ?? {};
    if (column === undefined || use === undefined) return [table, rows];
    const textOf = (text: unknown): unknown => (typeof text === "string" ? assemble(text, load) : text);
    return [table, rows.map((row) => ({ ...row, [column]: textOf(row[column]) }))];
  });
  return { ...(Object.fromEntries(withPayloads) as TableRows), run_contents: [] };
}
