// Crashes in a row: all worker processes are killed at once, several times, each time after they have claimed the work of the dead
// ones. Nothing commits in between, so every run looks as if it had killed its worker. None has: all must resume within seconds.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { slow } from "../definitions.ts";
import { Fleet } from "../fleet.ts";
import { until, type Rig, type World } from "../rig.ts";
import { ALL, openStore, openSubject, type Subject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const LEASE = 1_500;
/** The duration of each operation and task after the last kill. */
const EACH_MS = 400;
/** From the last takeover to the end of the last run. */
const EXPECTED_S = 5;

interface Scale {
  readonly runs: number;
  readonly workers: number;
  readonly concurrency: number;
}

const SHORT: Scale = { runs: 60, workers: 2, concurrency: 32 };
const LONG: Scale = { runs: 1_000, workers: 4, concurrency: 256 };

async function count(subject: Subject, table: string, where: string): Promise<number> {
  const [row] = await subject.sql(`select count(*) as n from ${subject.table(table)} where ${where}`);
  return Number(row?.["n"]);
}

/** Turns and tasks that no worker has claimed. */
async function waiting(subject: Subject): Promise<number> {
  const turns = await count(subject, "runs", "turn_due > 0 and turn_token is null");
  return turns + (await count(subject, "queue", "state in (1, 4)"));
}

/** Claimed runs and tasks with at least so many takeovers. */
async function held(subject: Subject, takeovers: number): Promise<number> {
  const turns = await count(subject, "runs", `turn_worker is not null and takeovers >= ${takeovers}`);
  return turns + (await count(subject, "queue", `state = 2 and takeovers >= ${takeovers}`));
}

async function crashInARow(world: World, crashes: number, { runs, workers, concurrency }: Scale): Promise<void> {
  const { tally } = world;
  await using subject = await openSubject(world.store);
  await using client = await openClient(subject.url);
  const gate = join(subject.folder, "no step ends while this file exists");
  writeFileSync(gate, "");
  const started = await Promise.all(
    Array.from({ length: runs }, (_, n) => client.start(slow, { n, gate, ms: EACH_MS }, { id: `slow-${n}` })),
  );
  await using fleet = await Fleet.of(workers, { url: subject.url, lease: LEASE, concurrency });
  await until("every run to be in flight", async () => (await waiting(subject)) === 0);
  for (let crash = 1; crash <= crashes; crash += 1) {
    await world.sometime(50, 250);
    if (crash === crashes) rmSync(gate);
    await Promise.all(fleet.workers.splice(0).map((worker) => worker.kill()));
    tally.add("kills", workers);
    await Promise.all(Array.from({ length: workers }, () => fleet.add()));
    if (crash < crashes) await until("work to be claimed again", async () => (await held(subject, crash)) > 0);
  }
  await until("the last takeover", async () => (await count(subject, "workers", "1 = 1")) === workers);
  const from = performance.now();
  await until(
    "every run to end",
    async () => (await count(subject, "runs", "ended_at is null and status <> 'blocked'")) === 0,
  );
  const seconds = (performance.now() - from) / 1_000;
  const late = seconds > EXPECTED_S ? `, more than the ${EXPECTED_S} s expected` : "";
  tally.note(
    `after ${crashes} crashes in a row`,
    `${runs} runs done ${seconds.toFixed(1)} s after the last takeover${late}`,
  );
  const blocked = await count(subject, "runs", "status = 'blocked'");
  if (blocked > 0) tally.broken(`${blocked} of ${runs} runs were blocked, and none of them killed a worker`);
  for (const [n, run] of started.entries())
    if ((await run.result({ timeout: "30 s" })) !== n * n) tally.lost(`the result of ${run.id}`);
  await fleet[Symbol.asyncDispose]();
  const store = await openStore(subject);
  for (const { invariant, message } of await store.check()) tally.broken(`${invariant}: ${message}`);
  for (const [n, { id }] of started.entries()) await checkRun(store, id, n * n, tally);
  tally.add("acknowledged", runs);
  await store.close();
}

export const crashesInARow: Rig = {
  name: "crashes-in-a-row",
  title: "SIGKILL of all worker processes, two, three and five times in a row without a commit in between",
  shows: "F1",
  stores: ALL,
  tested: ALL,
  rounds: 1,
  async run(world) {
    while (world.more())
      if (world.isShort) await crashInARow(world, 3, SHORT);
      else for (const crashes of [2, 3, 5]) await crashInARow(world, crashes, LONG);
  },
};
