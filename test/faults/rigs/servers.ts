// Servers: the database server is killed under load, or fails to sync. Workers reconnect automatically.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { treeOf } from "../../servers/processes.ts";
import type { TestServer } from "../../servers/server.ts";
import { Fleet } from "../fleet.ts";
import { until, without, type Rig } from "../rig.ts";
import { openSubject, SERVERS } from "../subject.ts";
import { Workload } from "../workload.ts";

export const serversKilled: Rig = {
  name: "servers-killed",
  title: "SIGKILL of all processes of the database server under load, and a restart",
  shows: "F3",
  stores: SERVERS,
  tested: SERVERS,
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store, { ownServer: true });
    const server = subject.server!;
    await using work = await Workload.begin(world, subject);
    await using fleet = await Fleet.of(2, { url: subject.url, lease: 2_000 });
    while (world.more()) {
      const acknowledged = work.acknowledged;
      await until("work to make progress", () => work.acknowledged > acknowledged + 5);
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

/** Traces a running server and makes its syncs fail. */
async function letSyncsFail(server: TestServer, log: string, isEnough: () => boolean): Promise<void> {
  const processes = treeOf(server.pid!).flatMap((pid) => ["-p", String(pid)]);
  const inject = "inject=fsync,fdatasync:error=EIO:when=3+20";
  const args = ["-f", "-qq", "-o", log, "-e", "trace=fsync,fdatasync", "-e", inject, ...processes];
  const tracer = spawn("strace", args, { stdio: "ignore" });
  const ended = once(tracer, "exit");
  try {
    await until("a failed sync", () => server.pid === undefined || isEnough());
  } finally {
    tracer.kill("SIGINT");
    await ended;
  }
}

export const serverSyncErrors: Rig = {
  name: "server-sync-errors",
  title: "syncs of the database server fail with EIO (strace); it gives up and recovers, or is started again",
  shows: "F6",
  stores: SERVERS,
  tested: [],
  rounds: 1,
  obstacle: () => without("strace", "-V"),
  async run(world) {
    await using subject = await openSubject(world.store, { ownServer: true });
    const server = subject.server!;
    await using work = await Workload.begin(world, subject, { loads: 12, transfers: 4 });
    await using fleet = await Fleet.of(2, { url: subject.url, lease: 3_000 });
    for (let round = 0; world.more(); round += 1) {
      const log = join(subject.folder, `strace-${round}.txt`);
      const injected = (): number =>
        existsSync(log) ? (readFileSync(log, "latin1").match(/INJECTED/g)?.length ?? 0) : 0;
      await letSyncsFail(server, log, () => injected() > 0);
      world.tally.add("failed calls", injected());
      // PostgreSQL restarts its processes; MariaDB ends.
      const acknowledged = work.acknowledged;
      await until("work to make progress", async () => {
        if (server.pid === undefined) {
          await server.start();
          world.tally.add("servers that gave up, started again");
        }
        return work.acknowledged > acknowledged;
      });
    }
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};
