// capacity: what a unit of work costs the database, for docs/guides/capacity.md: rows, bytes, transactions, and CPU time of the server and
// of the other processes, each per unit. A unit is a step, a task, a run or a waiting run; for `idle`, a second of one worker.

import { setTimeout as wait } from "node:timers/promises";
import { createConnection, type RowDataPacket } from "mysql2/promise";
import { measureBatches } from "./batched-runs.ts";
import { history, steps, tasks } from "./definitions.ts";
import type { Rig } from "./rig.ts";
import { scaled, type Measured, type Plan, type Workload } from "./workload.ts";

/** Counts of the server since it started; an embedded database has only its size. */
interface Counters {
  readonly atMs: number;
  readonly bytes: number;
  readonly serverCpuMs: number;
  readonly allCpuMs: number;
  readonly rows?: number;
  readonly logBytes?: number;
  readonly transactions?: number;
  readonly statements?: number;
}

const PER_RUN = 10;

const UNITS: Readonly<Record<string, (rig: Rig, plan: Plan) => Promise<Measured>>> = {
  steps: (rig, plan) => concurrent(plan, 2_000, PER_RUN, () => rig.engine.start(steps, { count: PER_RUN, waitMs: 0 })),
  tasks: (rig, plan) => concurrent(plan, 1_000, PER_RUN, () => rig.engine.start(tasks, { count: PER_RUN, waitMs: 0 })),
  runs: (rig, plan) => concurrent(plan, 10_000, 1, () => rig.engine.start(steps, { count: 1, waitMs: 0 })),
  waiting: startWaiting,
  idle: async (_rig, plan) => {
    const seconds = scaled(10, plan);
    await wait(seconds * 1_000);
    return { runs: 0, steps: seconds, elapsedMs: seconds * 1_000, latenciesMs: [] };
  },
};

export const capacityWorkload: Workload = {
  name: "capacity",
  variants: Object.keys(UNITS),
  warmUp: 0,
  hasNoRawLimit: true,
  async run(rig, plan) {
    const unit = UNITS[plan.variant];
    if (unit === undefined) throw new Error(`Expected one of ${Object.keys(UNITS).join(", ")}; got ${plan.variant}.`);
    // The engine polls often for a while after it has started, or after work.
    if (plan.variant === "idle") await wait(8_000 * Math.min(1, plan.scale));
    else await unit(rig, { ...plan, scale: plan.scale / 4 });
    const before = await countersOf(rig);
    const measured = await unit(rig, plan);
    const after = await countersOf(rig);
    const units = plan.variant === "idle" ? (after.atMs - before.atMs) / 1_000 : measured.steps;
    const per = (name: keyof Counters): Readonly<Record<string, number>> =>
      after[name] === undefined ? {} : { [`${name}PerUnit`]: (after[name] - before[name]!) / units };
    const serverUs = ((after.serverCpuMs - before.serverCpuMs) / units) * 1_000;
    const allUs = ((after.allCpuMs - before.allCpuMs) / units) * 1_000;
    return {
      ...measured,
      extra: {
        cpuUsPerStep: allUs,
        serverCpuUs: serverUs,
        otherCpuUs: allUs - serverUs,
        ...per("bytes"),
        ...per("rows"),
        ...per("logBytes"),
        ...per("transactions"),
        ...per("statements"),
      },
    };
  },
};

function concurrent(
  plan: Plan,
  runs: number,
  count: number,
  start: () => ReturnType<Rig["engine"]["start"]>,
): Promise<Measured> {
  return measureBatches({ runs: scaled(runs, plan), size: count === 1 ? 1_000 : 200, count }, start as never);
}

async function startWaiting(rig: Rig, plan: Plan): Promise<Measured> {
  const runs = scaled(10_000, plan);
  const startedAt = performance.now();
  const ids = new Set<string>();
  const onStart = ({ id }: { readonly id: string }): unknown => ids.add(id);
  await Promise.all(Array.from({ length: runs }, () => rig.engine.start(history, { count: 0 }).then(onStart)));
  while (ids.size > 0) {
    await wait(100);
    for await (const { id } of rig.engine.list({ status: "waiting", limit: 100_000 })) ids.delete(id);
  }
  return { runs, steps: runs, elapsedMs: performance.now() - startedAt, latenciesMs: [] };
}

async function countersOf(rig: Rig): Promise<Counters> {
  const { kind, url } = rig.database;
  // PostgreSQL's processes report their counts when they have been idle for ten seconds.
  if (kind === "postgres") await wait(11_000);
  const usage = {
    atMs: performance.now(),
    serverCpuMs: rig.database.usage().cpuMs,
    allCpuMs: (await rig.usage()).cpuMs,
  };
  const { bytes } = await rig.database.position();
  if (kind === "sqlite") return { ...usage, bytes };
  return { ...usage, bytes, ...(await (kind === "postgres" ? postgresCounters(url) : mysqlCounters(url))) };
}

async function postgresCounters(url: string): Promise<Pick<Counters, "rows" | "logBytes" | "transactions">> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<Record<"rows" | "logBytes" | "transactions", string>>(
    `select (select sum(n_tup_ins + n_tup_upd + n_tup_del) from pg_stat_user_tables) as rows,
        pg_current_wal_lsn() - '0/0' as "logBytes",
        (select xact_commit from pg_stat_database where datname = current_database()) as transactions`,
  );
  await client.end();
  const found = rows[0]!;
  return { rows: Number(found.rows), logBytes: Number(found.logBytes), transactions: Number(found.transactions) };
}

async function mysqlCounters(
  url: string,
): Promise<Pick<Counters, "rows" | "logBytes" | "transactions" | "statements">> {
  const connection = await createConnection({ uri: url });
  const [found] = await connection.query<RowDataPacket[]>("show global status");
  await connection.end();
  const status = new Map(found.map((row) => [String(row["Variable_name"]).toLowerCase(), Number(row["Value"])]));
  const sum = (...names: readonly string[]): number => names.reduce((all, name) => all + (status.get(name) ?? 0), 0);
  return {
    rows: sum("handler_write", "handler_update", "handler_delete"),
    logBytes: sum("innodb_os_log_written"),
    transactions: sum("com_commit"),
    statements: sum("questions"),
  };
}
