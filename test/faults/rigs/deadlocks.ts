// Deadlocks: a foreign session locks Reprise's rows in the wrong order and holds them too long. Clients must not notice.

import { setTimeout as sleep } from "node:timers/promises";
import { createConnection } from "mysql2/promise";
import { Client } from "pg";
import { Fleet } from "../fleet.ts";
import { until, type Rig } from "../rig.ts";
import { openSubject, SERVERS, type Subject } from "../subject.ts";
import { Workload } from "../workload.ts";

interface Session extends AsyncDisposable {
  query(text: string): Promise<unknown>;
}

async function openSession({ kind, url }: Subject): Promise<Session> {
  if (kind === "mysql") {
    const connection = await createConnection(url);
    return {
      query: (text) => connection.query(text),
      [Symbol.asyncDispose]: async () => connection.destroy(),
    };
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  return { query: (text) => client.query(text), [Symbol.asyncDispose]: () => client.end() };
}

async function deadlocksOn(subject: Subject): Promise<number> {
  const [row] = await subject.sql(
    subject.kind === "postgres"
      ? "select deadlocks as n from pg_stat_database where datname = current_database()"
      : "select variable_value as n from information_schema.global_status where variable_name = 'INNODB_DEADLOCKS'",
  );
  return Number(row?.["n"] ?? 0);
}

export const deadlocks: Rig = {
  name: "deadlocks",
  title: "a foreign session locks rows of runs in the wrong order and holds them",
  shows: "F13, F14",
  stores: SERVERS,
  tested: SERVERS,
  rounds: 6,
  async run(world) {
    const settings = { postgres: { deadlock_timeout: "50ms" }, mysql: { "innodb-lock-wait-timeout": 1 }, sqlite: {} };
    await using subject = await openSubject(world.store, { ownServer: true, settings: settings[world.store] });
    await using work = await Workload.begin(world, subject);
    await using fleet = await Fleet.of(2, { url: subject.url, lease: 5_000 });
    await until("a load", () => work.acknowledged > 40);
    const runs = subject.table("runs");
    for (let round = 0; world.more(); round += 1) {
      await using session = await openSession(subject);
      const live = await subject.sql(`select run from ${runs} order by run desc limit 30`);
      try {
        await session.query("begin");
        for (const { run } of live) {
          if (world.chance.happens(0.5)) continue;
          await session.query(`select run from ${runs} where run = ${String(run)} for update`);
          await sleep(world.chance.below(30));
        }
        // Sometimes for longer than the lock timeout.
        if (round % 3 === 2) await sleep(1_500);
        await session.query("rollback");
        world.tally.add("foreign transactions");
      } catch {
        world.tally.add("foreign transactions that were the victim");
      }
    }
    world.tally.add("deadlocks counted by the server", await deadlocksOn(subject));
    await work.finish();
    const errors = fleet.said.match(/^reprise (?:error|warn).*$/gm) ?? [];
    for (const line of errors.slice(0, 5)) world.tally.broken(`it surfaced: ${line}`);
    if ((world.tally.counts.get("errors answered to clients") ?? 0) > 0) world.tally.broken("clients got errors");
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};
