// Disk: a full disk, and a disk that fails to sync. Nothing acknowledged is lost, and workers resume when it works again.

import { execFileSync } from "node:child_process";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Fleet } from "../fleet.ts";
import { until, without, type Rig, type World } from "../rig.ts";
import { ALL, openSubject, type StoreKind } from "../subject.ts";
import { Workload } from "../workload.ts";

/** Space for the initial files of a server, its log, and some work. */
const MEGABYTES: Readonly<Record<StoreKind, number>> = { sqlite: 48, postgres: 256, mysql: 320 };

/** A separate file system that can be filled. */
class SmallDisk implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "reprise-disk-"));

  constructor(megabytes: number) {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", this.folder]);
    chmodSync(this.folder, 0o777);
  }

  get #ballast(): string {
    return join(this.folder, "ballast");
  }

  /** Fills it to the last byte. */
  fill(): void {
    const file = openSync(this.#ballast, "a");
    for (let size = 1 << 20; size >= 1;) {
      try {
        writeSync(file, Buffer.alloc(size));
      } catch {
        size >>= 1;
      }
    }
    closeSync(file);
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  [Symbol.dispose](): void {
    execFileSync("umount", ["-l", this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const errorsOf = ({ tally }: World): number => tally.counts.get("errors answered to clients") ?? 0;

export const diskFull: Rig = {
  name: "disk-full",
  title: "the disk of the store is filled to the last byte, and freed",
  shows: "F7",
  stores: ALL,
  tested: ALL,
  rounds: 1,
  obstacle: () =>
    without("mount", "--version") ??
    (process.getuid?.() === 0 ? undefined : "only root may mount a disk that can be filled"),
  async run(world) {
    using disk = new SmallDisk(MEGABYTES[world.store]);
    await using subject = await openSubject(world.store, { ownServer: true, under: disk.folder });
    await using work = await Workload.begin(world, subject, { loads: 12, transfers: 4 });
    await using fleet = await Fleet.of(2, { url: subject.url, lease: 2_000 });
    while (world.more()) {
      await world.sometime(200, 600);
      // Clients get errors; workers write them to their logs.
      const troubles = (): number => errorsOf(world) + fleet.said.length;
      const before = troubles();
      const enough = work.acknowledged + 50;
      // Writes into space that files already have succeed for a while.
      await until("an error that the disk is full, or further progress", () => {
        disk.fill();
        return troubles() > before || work.acknowledged > enough;
      });
      world.tally.add(troubles() > before ? "times full" : "times full without an effect");
      await world.sometime(200, 1_000);
      disk.free();
      // A server that could not write its log has stopped; an operator restarts it.
      if (subject.server !== undefined && subject.server.pid === undefined) {
        await subject.server.start();
        world.tally.add("servers that gave up, started again");
      }
      const acknowledged = work.acknowledged;
      await until("work to make progress", () => work.acknowledged > acknowledged);
    }
    await work.finish();
    if (world.store === "sqlite" && !/no room is left/.test(fleet.said)) world.tally.broken("no worker said why");
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};

/** Makes system calls fail, from the nth on and then every few; `log` records them. */
function failing(log: string, calls: string, error: "EIO" | "ENOSPC", first: number, every: number): readonly string[] {
  const inject = `inject=${calls}:error=${error}:when=${first}+${every}`;
  return ["strace", "-f", "-qq", "-o", log, "--seccomp-bpf", "-s", "0", "-e", `trace=${calls}`, "-e", inject];
}

const SICK: readonly ((log: string) => readonly string[])[] = [
  (log) => failing(log, "fsync,fdatasync", "EIO", 30, 20),
  (log) => failing(log, "pwrite64", "ENOSPC", 200, 150),
  (log) => failing(log, "pwrite64", "EIO", 300, 170),
];

export const syncErrors: Rig = {
  name: "sync-errors",
  title: "writes and syncs of a worker's file fail with EIO and ENOSPC (strace)",
  shows: "F6, F7",
  stores: ["sqlite"],
  tested: ["sqlite"],
  rounds: 3,
  obstacle: () => without("strace", "-V"),
  async run(world) {
    await using subject = await openSubject(world.store);
    await using work = await Workload.begin(world, subject, { loads: 12, transfers: 4 });
    await using fleet = await Fleet.of(1, { url: subject.url });
    for (let round = 0; world.more(); round += 1) {
      const log = join(subject.folder, `strace-${round}.txt`);
      const injected = (): number => readFileSync(log, "latin1").match(/INJECTED/g)?.length ?? 0;
      const sick = await fleet.add({ wrap: SICK[round % SICK.length]!(log) });
      await until("errors of the disk", () => sick.isOver || injected() >= 5);
      if (sick.isOver) world.tally.broken(`a worker ended because of its disk:\n${sick.said.slice(-2_000)}`);
      await sick.kill();
      world.tally.add("failed calls", injected());
      world.tally.add("errors in logs", sick.said.match(/reprise error/g)?.length ?? 0);
      rmSync(log);
    }
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};
