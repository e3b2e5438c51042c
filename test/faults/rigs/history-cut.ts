// History cut: history goes back under load: a backup is restored in place, or an asynchronous standby is promoted without the last
// commits. Lost commits are reported, no run gets data of another, and commits acknowledged afterwards stay.

import { freshDatabase } from "../../servers/databases.ts";
import { startCluster } from "../../servers/cluster.ts";
import { Fleet } from "../fleet.ts";
import { historyOf } from "../history.ts";
import { OrderLoad } from "../orders.ts";
import { until, type Rig, type World } from "../rig.ts";
import { ALL, openSubject, SERVERS } from "../subject.ts";

const LEASE_MS = 1_000;
/** A restore goes back at least one heartbeat: the backup was made before, and took some time. */
const HEARTBEAT_MS = Math.ceil(LEASE_MS / 3);
const WORKERS = 3;

async function goesOn(load: OrderLoad): Promise<void> {
  const before = load.acknowledged;
  await until("work to make progress", () => load.acknowledged > before + 10);
}

interface Cut {
  /** From here on, commits will be lost. */
  prepare(): Promise<void>;
  goBack(): Promise<unknown>;
}

async function underLoad(world: World, url: string, cut: Cut): Promise<void> {
  await using load = await OrderLoad.begin(world, url);
  await using fleet = await Fleet.of(WORKERS, { url, lease: LEASE_MS });
  while (world.more()) {
    await goesOn(load);
    await cut.prepare();
    await load.cut(cut.goBack);
  }
  await load.finish();
  if (fleet.workers.some(({ isOver }) => isOver))
    world.tally.broken(`a worker did not survive:\n${fleet.said.slice(-2_000)}`);
  await fleet[Symbol.asyncDispose]();
  await load.check();
}

export const historyRestored: Rig = {
  name: "history-restored",
  title: "a backup is restored in place under load (pg_restore --clean, tables of a dump, SQLite's online backup)",
  shows: "F19",
  stores: ALL,
  tested: ALL,
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store);
    const history = historyOf(subject.url, subject.folder);
    await underLoad(world, subject.url, {
      async prepare() {
        await history.save();
        await world.sometime(HEARTBEAT_MS, HEARTBEAT_MS + 1_200);
      },
      goBack: () => history.restore(),
    });
  },
};

export const historyFailedOver: Rig = {
  name: "history-failover",
  title: "an asynchronous standby is promoted without the last commits of the primary that died, under load",
  shows: "F19",
  stores: SERVERS,
  tested: SERVERS,
  rounds: 2,
  async run(world) {
    await using cluster = await startCluster(world.store as "postgres" | "mysql", { replication: "async" });
    await using database = await freshDatabase(cluster);
    await underLoad(world, database.url, {
      async prepare() {
        if (cluster.standby === undefined) {
          await cluster.addStandby();
          await cluster.catchUp();
        }
        await cluster.pauseReplication();
        await world.sometime(20, 1_000);
      },
      goBack: () => cluster.failOver(),
    });
  },
};
