// ACC 22: a flow of two hundred nodes, its worker killed with SIGKILL at fifty random commits.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "reprise";
import { createTestEngine } from "reprise/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { openSqliteStore } from "../../../src/stores/sqlite/sqlite-store.ts";
import { randomSource } from "../../replay/random-source.ts";
import { SPREAD, twoHundred } from "./flow-definitions.ts";
import type { Work } from "./flow-worker.ts";

const KILLS = 50;
const SEED = 20_261_116;

let folder: string;
const children = new Set<ChildProcess>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reprise-sigkill-"));
});
afterEach(async () => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
  await rm(folder, { recursive: true, force: true });
});

/** Waits for its work, so that the next one is there when it is needed. */
function startWorker(ran: string): ChildProcess {
  const child = fork(new URL("./flow-worker.ts", import.meta.url), {
    execArgv: ["--conditions=reprise-source"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { ...process.env, RAN: ran },
  });
  children.add(child);
  return child;
}

async function undisturbed(): Promise<unknown> {
  await using engine = await createTestEngine({ definitions: [twoHundred] });
  const run = await engine.start(twoHundred, 7 as never);
  return await run.result();
}

test(
  `ACC 22 kill mid-transaction: ${KILLS} SIGKILLs during a flow of 200 nodes: the same result, no node committed twice`,
  { timeout: 480_000 },
  async () => {
    const expected = await undisturbed();
    const path = join(folder, "flow.db");
    const ran = join(folder, "ran.txt");
    const chance = randomSource(SEED);
    await using client = await createClient({ store: `sqlite:${path}`, definitions: [twoHundred] });
    const run = await client.start(twoHundred, 7 as never, { id: "the run" });
    let kills = 0;
    let next = startWorker(ran);
    while (kills < KILLS && (await run.info()).status !== "completed") {
      const child = next;
      const died = once(child, "exit");
      const kill = { when: chance.pick(["before", "after"] as const), commit: 1 + chance.below(3) };
      child.send({ path, kill } satisfies Work);
      next = startWorker(ran);
      expect((await died)[1]).toBe("SIGKILL");
      kills += 1;
    }
    next.send({ path } satisfies Work);
    expect(await run.result({ timeout: "60 s" })).toEqual(expected);
    expect(kills).toBe(KILLS);
    const ended: string[] = [];
    for await (const { type, command = "" } of run.journal()) if (type === "NodeCompleted") ended.push(command);
    expect(new Set(ended).size).toBe(ended.length);
    expect(ended.filter((command) => command.startsWith("each["))).toHaveLength(SPREAD + 1);
    expect(await run.verify()).toMatchObject({ status: "same" });
    // What a killed worker had begun is begun again; what it had committed is not.
    const begun = (await readFile(ran, "utf8")).trim().split("\n");
    expect(begun.length).toBeGreaterThanOrEqual(144 + SPREAD + 1);
    for (const child of children) child.kill("SIGKILL");
    const store = await openSqliteStore({ path, clock: systemClock, timers: systemTimers, random: systemRandom });
    expect(await store.check()).toEqual([]);
    await store.close();
  },
);
