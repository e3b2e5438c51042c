// The database server itself: killed under load, and failing to sync. Workers find their way back by themselves.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Fleet } from "../fleet.ts";
import { until, type Rig } from "../rig.ts";
import { openSubject, SERVERS } from "../subject.ts";
import { Workload } from "../workload.ts";
import { failing } from "./disk.ts";

export const serversKilled: Rig = {
  name: "servers-killed",
  title: "SIGKILL of all processes of the database server under load, and a restart",
  shows: "F3",
  stores: SERVERS,
  tested: SERVERS,
  rounds: 3,
  async run(world) {
    await using subject = await openSubject(world.store, { ownServer: true });
    const server = subject.server!;
    await using work = await Workload.begin(world, subject);
    await using fleet = await Fleet.of(2, { url: subject.url, lease: 2_000 });
    while (world.more()) {
      const acknowledged = work.acknowledged;
      await until("work to go on", () => work.acknowledged > acknowledged + 5);
      await world.sometime(0, 400);
      await server.kill();
      world.tally.add("server kills");
      await world.sometime(0, 800);
      await server.start();
    }
    await work.finish();
    if (fleet.workers.some(({ isOver }) => isOver))
      world.tally.broken(`a worker did not survive:\n${fleet.said.slice(-2_000)}`);
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};

export const serverSyncErrors: Rig = {
  name: "server-sync-errors",
  title: "syncs of the database server fail with EIO (strace); it gives up and is started again",
  shows: "F6",
  stores: SERVERS,
  tested: [],
  rounds: 1,
  async run(world) {
    const log = join("/tmp", `reprise-strace-${process.pid}-${world.store}.txt`);
    await using subject = await openSubject(world.store, {
      ownServer: true,
      wrap: failing(log, "fsync,fdatasync", "EIO", 40, 40),
    });
    const server = subject.server!;
    const injected = (): number => readFileSync(log, "latin1").match(/INJECTED/g)?.length ?? 0;
    await using work = await Workload.begin(world, subject, { loads: 12, transfers: 4 });
    await using fleet = await Fleet.of(2, { url: subject.url, lease: 3_000 });
    while (world.more()) {
      const before = injected();
      await until("a failed sync", () => server.pid === undefined || injected() > before);
      world.tally.add("failed calls", Math.max(1, injected() - before));
      // PostgreSQL starts its processes again by itself; MariaDB ends.
      const acknowledged = work.acknowledged;
      await until("work to go on", async () => {
        if (server.pid === undefined) {
          await server.start();
          world.tally.add("servers that gave up, started again");
        }
        return work.acknowledged > acknowledged;
      });
    }
    const restart = setInterval(() => void (server.pid === undefined && server.start().catch(() => undefined)), 1_000);
    await work.finish();
    clearInterval(restart);
    await fleet[Symbol.asyncDispose]();
    await server.kill();
    await server.start();
    await work.check();
  },
};
