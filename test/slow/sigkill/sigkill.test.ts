// Real processes on a real file, killed at random. One seed decides everything the test decides.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createClient, type Run } from "reprise";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { drawInt } from "../../../src/base/random.ts";
import { findJournalFault, isTerminal } from "../../../src/kernel/index.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { double, expectedOf, leaf, load, shaky } from "./definitions.ts";

const KILLS = 100;
const FEEDERS = 40;
const SEED = BigInt(process.env["REPRISE_SEED"] ?? "20261116");
const definitions = [load, leaf, double, shaky];

let folder: string;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reprise-sigkill-"));
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

async function startWorker(path: string): Promise<ChildProcess> {
  const child = fork(new URL("./worker.ts", import.meta.url), [path], {
    execArgv: ["--conditions=reprise-source"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  children.add(child);
  await once(child, "message");
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  children.delete(child);
}

test(
  `two workers on one file, ${KILLS} random SIGKILLs under load: nothing acknowledged is lost, nothing is committed twice`,
  { timeout: 600_000 },
  async () => {
    const path = join(folder, "load.db");
    await using client = await createClient({ store: `sqlite:${path}`, definitions });
    const started: { run: Run<typeof load>; n: number }[] = [];
    let stop = false;
    let next = 0;
    // A steady load: each feeder has one run under way. The point is kills under load, not a long queue.
    const feeding = Array.from({ length: FEEDERS }, async () => {
      while (!stop) {
        const n = next++;
        const run = await client.start(load, n, { id: `load-${n}` });
        started.push({ run, n });
        await run.resolve("go", n + 1);
        await run.result({ timeout: "60 s" });
      }
    });

    const workers = [await startWorker(path), await startWorker(path)];
    for (let n = 0; n < KILLS; n += 1) {
      // The fault itself is random in time; nothing is waited for here.
      await pause(20 + drawInt(SEED, "pause", n, 200));
      const victim = drawInt(SEED, "victim", n, 2);
      await kill(workers[victim]!);
      workers[victim] = await startWorker(path);
    }
    stop = true;
    await Promise.all(feeding);

    const outputs = await Promise.all(started.map(({ run }) => run.result({ timeout: "60 s" })));
    outputs.forEach((output, index) => {
      const { n } = started[index]!;
      expect(output, `run load-${n}`).toEqual(expectedOf(n, n + 1));
    });
    await Promise.all(workers.map(kill));

    const store = await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom });
    expect(await store.check()).toEqual([]);
    for (const { run } of started) {
      const record = await store.findRun(run.id);
      const entries = await store.readJournal(record!.run, 0);
      expect(findJournalFault(entries, record!)).toBeUndefined();
      const settled = entries
        .filter(({ type, command }) => isTerminal(type) && command !== "")
        .map(({ command }) => command);
      expect(new Set(settled).size, `${run.id} settled a command twice`).toBe(settled.length);
    }
    await store.close();
    for (const { run } of started.slice(0, 50)) expect((await run.verify()).status).toBe("same");
    console.info(`seed ${SEED}: ${KILLS} kills, ${started.length} runs acknowledged, 0 lost, 0 doubled`);
  },
);
