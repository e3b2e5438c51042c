// Clock jumps: a worker's wall clock jumps by hours and years, both ways, while timers run and leases are renewed.
//
// On a server the database's clock is used: no worker's clock ends a timer early or expires a lease. A file has no
// clock: its time is the highest that any of its processes has seen. So a clock that is set forward moves all processes
// forward, timers included, and never back.

import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "../../../src/kernel/index.ts";
import { naps } from "../definitions.ts";
import { Fleet } from "../fleet.ts";
import type { Rig, Tally } from "../rig.ts";
import { ALL, openStore, openSubject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const LIBRARIES = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime"];
const JUMPS = ["+3600", "-7200", "+0", "+86400", "-315360000", "+0", "+315360000", "+0"];
const NAP = { each: 150, times: 3 };
const RUNS = 20;

const library = LIBRARIES.map((folder) => join(folder, "libfaketime.so.1")).find((path) => existsSync(path));

/** Replaced atomically: a process may read it at any time. */
function setClock(file: string, offset: string): void {
  writeFileSync(`${file}.new`, offset);
  renameSync(`${file}.new`, file);
}

export const clockJumps: Rig = {
  name: "clock-jumps",
  title: "a worker's wall clock jumps by hours and years, forward and back",
  shows: "F11",
  stores: ALL,
  tested: ALL,
  rounds: 3,
  obstacle: () => (library === undefined ? "libfaketime is not installed" : undefined),
  async run(world) {
    await using subject = await openSubject(world.store);
    const file = join(subject.folder, "clock");
    setClock(file, "+0");
    const env = {
      LD_PRELOAD: library ?? "",
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    const work = { url: subject.url, lease: 2_000 };
    await using client = await openClient(subject.url);
    await using fleet = await Fleet.of(1, work);
    const jumping = await fleet.add({ env });
    const store = await openStore(subject);
    const before = (await store.listWorkers()).map(({ worker }) => worker);
    const ids: string[] = [];
    for (let round = 0; world.more(); round += 1) {
      const begun = performance.now();
      const runs = await Promise.all(
        Array.from({ length: RUNS }, (_, n) => client.start(naps, NAP, { id: `naps-${round}-${n}` })),
      );
      ids.push(...runs.map(({ id }) => id));
      const jump = JUMPS[round % JUMPS.length]!;
      setClock(file, jump);
      const seconds = Math.round(((await jumping.time()) - Date.now()) / 1_000);
      if (Math.abs(seconds - Number(jump)) > 60) world.tally.broken(`a clock is off by ${seconds} s, not by ${jump} s`);
      world.tally.add("clock jumps");
      await Promise.all(
        runs.map(async (run) => {
          await run.result({ timeout: "120 s" });
          const early = performance.now() - begun < NAP.each * NAP.times - 1;
          if (early) world.tally.add("timers carried forward by a clock");
          if (early && world.store !== "sqlite") world.tally.broken(`${run.id} ended before its timers were due`);
        }),
      );
    }
    setClock(file, "+0");
    const after = (await store.listWorkers()).map(({ worker }) => worker);
    for (const worker of before.filter((each) => !after.includes(each))) {
      world.tally.add("leases lost to a clock");
      if (world.store !== "sqlite") world.tally.broken(`worker ${worker} lost its lease to a clock`);
    }
    await fleet[Symbol.asyncDispose]();
    for (const { invariant, message } of await store.check()) world.tally.broken(`${invariant}: ${message}`);
    for (const id of ids) {
      await checkRun(store, id, NAP.times, world.tally);
      const { run = 0 } = (await store.findRun(id)) ?? {};
      checkTimers(id, await store.readJournal(run, 0), world.store === "sqlite", world.tally);
    }
    world.tally.add("acknowledged", ids.length);
    await store.close();
  },
};

/** By the store's clock: each timer fired once, and not before its due time. */
function checkTimers(id: string, entries: readonly Entry[], isFile: boolean, tally: Tally): void {
  for (const [index, { type, command }] of entries.entries()) {
    if (type !== "TimerStarted") continue;
    tally.add("timers");
    const due = entries[index - 1]!.at + NAP.each;
    const fired = entries.filter((entry) => entry.type === "TimerFired" && entry.command === command);
    if (fired.length === 0) tally.lost(`${command} of ${id} never fired`);
    if (fired.length > 1) tally.doubled(`${command} of ${id} fired ${fired.length} times`);
    for (const { at } of fired) {
      if (at >= due) continue;
      // Processes on one file see each other's time only when they read it.
      if (isFile && due - at < NAP.each) tally.add("timers early by a difference of clocks");
      else tally.broken(`${command} of ${id} fired ${due - at} ms early`);
    }
  }
}
