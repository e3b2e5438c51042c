// PgBouncer in session mode in front of PostgreSQL: its server connections are ended, and PgBouncer itself is killed.

import { startPgBouncer, whyNoPgBouncer } from "../../servers/pgbouncer.ts";
import { Fleet } from "../fleet.ts";
import { until, type Rig } from "../rig.ts";
import { openSubject } from "../subject.ts";
import { Workload } from "../workload.ts";

export const pgBouncer: Rig = {
  name: "pgbouncer",
  title: "PgBouncer in session mode: its connections to the server are ended under load, and it is killed itself",
  shows: "F3",
  stores: ["postgres"],
  tested: ["postgres"],
  rounds: 6,
  obstacle: whyNoPgBouncer,
  async run(world) {
    await using subject = await openSubject(world.store, { ownServer: true });
    await using pooler = await startPgBouncer(subject.url, "session");
    const url = `${pooler.url}?pooler=session`;
    await using work = await Workload.begin(world, subject, { clientUrl: url });
    await using fleet = await Fleet.of(2, { url, lease: 2_000 });
    for (let round = 1; world.more(); round += 1) {
      const acknowledged = work.acknowledged;
      await until("work to make progress", () => work.acknowledged > acknowledged + 5);
      await world.sometime(0, 200);
      if (round % 3 === 0) {
        await pooler.restart();
        world.tally.add("PgBouncer killed");
        continue;
      }
      const count = 1 + world.chance.below(8);
      const ended = await subject.sql(
        `select pg_terminate_backend(pid) from (select pid from pg_stat_activity where application_name like 'reprise %' order by random() limit ${count}) as chosen`,
      );
      world.tally.add("server connections ended", ended.length);
    }
    await work.finish();
    if (fleet.workers.some(({ isOver }) => isOver))
      world.tally.broken(`a worker did not survive:\n${fleet.said.slice(-2_000)}`);
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};
