// Failover: the primary dies and its synchronous standby takes over, under load. Every acknowledged commit is on the new primary, and
// workers and clients reconnect automatically: the clients by an address that follows the primary, the workers by a list of hosts.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findPostgres } from "../../../scripts/servers.mjs";
import { Fleet } from "../fleet.ts";
import { until, type Rig } from "../rig.ts";
import { openClusterSubject, SERVERS } from "../subject.ts";
import { Workload } from "../workload.ts";

/** The minimum of a long run. */
const LONG_FAILOVERS = 20;

export const failoverSync: Rig = {
  name: "failover-sync",
  title:
    "SIGKILL of the primary under load, promotion of its synchronous standby; the dead server returns as a standby",
  shows: "F19",
  stores: SERVERS,
  tested: SERVERS,
  rounds: 2,
  obstacle: () => (hasBackup() ? undefined : "this PostgreSQL has no pg_basebackup"),
  async run(world) {
    await using subject = await openClusterSubject(world.store, { replication: "sync" });
    const { cluster } = subject;
    await using work = await Workload.begin(world, subject);
    await using fleet = await Fleet.of(2, { url: subject.hostsUrl, lease: 3_000 });
    const promotions: number[] = [];
    const gaps: number[] = [];
    while (world.more() || (!world.isShort && gaps.length < LONG_FAILOVERS)) {
      const before = work.acknowledged;
      await until("work to make progress", () => work.acknowledged > before + 5);
      await world.sometime(0, 400);
      const { diedAt, promotedAt } = await cluster.failOver();
      const acknowledged = work.acknowledged;
      while (work.acknowledged === acknowledged) await sleep(2);
      gaps.push(performance.now() - promotedAt);
      promotions.push(promotedAt - diedAt);
      world.tally.add("failovers");
      await cluster.addStandby();
    }
    world.tally.note("promotion", spreadOf(promotions));
    world.tally.note("from promotion to the first acknowledged start", spreadOf(gaps));
    await work.finish();
    if (fleet.workers.some(({ isOver }) => isOver))
      world.tally.broken(`a worker did not survive:\n${fleet.said.slice(-2_000)}`);
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};

function hasBackup(): boolean {
  const folder = findPostgres();
  return folder === undefined || existsSync(join(folder, "pg_basebackup"));
}

export function spreadOf(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  return `p50 ${median.toFixed(0)} ms and max ${(sorted.at(-1) ?? 0).toFixed(0)} ms`;
}
