// T-13: sixteen workers and two sequencers on PostgreSQL, in processes of their own, one of which is killed.

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { createClient } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { hasEnded, type LogRow, type RunRecord, type Store } from "../../../src/kernel/index.ts";
import { parseRecord } from "../../../src/federation/log/record.ts";
import { Sequencer } from "../../../src/federation/sync/sequencer.ts";
import { runRecordOf, signingKeyOf } from "../../../src/receipts/index.ts";
import { columnsOf } from "../../../src/stores/rows/tables.ts";
import { storeOf } from "../../../src/stores/store-url.ts";
import { describeOn, freshDatabase } from "../../servers/index.ts";
import { runQuery } from "../../servers/run-query.ts";
import { DEFINITIONS, order } from "./sequencer-definitions.ts";

const TIMEOUT = 240_000;
const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom } as const;
const KEY = signingKeyOf(new Uint8Array(32), "edge7");
const WAIT = { timeout: 120_000, interval: 100 };
const PAGE = 5_000;
const COLUMNS: readonly string[] = columnsOf("runs");
/** Numbers of runs on a server are greater than these. */
const COPIED: Readonly<Record<string, string>> = { run: "n", root: "n", id: "'copy-' || n" };

const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

async function startProcess(url: string, role: "workers" | "sequencer"): Promise<ChildProcess> {
  const child = fork(new URL("./sequencer-process.ts", import.meta.url), [url, role], {
    execArgv: ["--conditions=reprise-source"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  children.add(child);
  await once(child, "message");
  return child;
}

/** Returns what the process says at its end. */
async function stop(child: ChildProcess): Promise<number> {
  child.send("stop");
  const [said] = (await once(child, "message")) as [string];
  await once(child, "exit");
  return Number(said.split(" ")[1]);
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}

function open(url: string): Promise<Store> {
  return storeOf(url)["~open"]({ ...PORTS, durability: "relaxed" });
}

async function readAll(store: Store): Promise<readonly LogRow[]> {
  const rows: LogRow[] = [];
  for (let page = await store.readLog(0, PAGE); page.length > 0; page = await store.readLog(rows.length, PAGE))
    rows.push(...page);
  return rows;
}

/** Every ended run has one record of its last end, numbers are dense, and the records of the log are valid. */
async function checkLog(store: Store, isAdopted: (record: RunRecord) => boolean): Promise<readonly LogRow[]> {
  const rows = await readAll(store);
  let after = 0;
  const keys = rows.map(({ n, rec }) => {
    const record = parseRecord(rec, { origin: KEY.origin, n, after });
    after = record.c;
    return record.k;
  });
  expect(rows.map(({ n }) => n)).toEqual(rows.map((_, index) => index + 1));
  const runs = await store.readRuns(rows.map(({ run }) => run!));
  const expected = runs.map((run) => runRecordOf(run!, { key: KEY, isAdopted: isAdopted(run!) }).key);
  expect(keys).toEqual(expected);
  expect(new Set(keys).size).toBe(keys.length);
  return rows;
}

async function startOrders(url: string, prefix: string, count: number): Promise<void> {
  await using client = await createClient({ store: url, definitions: DEFINITIONS });
  const ids = Array.from({ length: count }, (_, n) => n);
  await Promise.all(ids.map((n) => client.start(order, n, { id: `${prefix}-${n}` })));
}

async function ended(store: Store): Promise<readonly [live: number, ended: number]> {
  const { runs } = await store.info();
  let [live, over] = [0, 0];
  for (const [status, count] of Object.entries(runs))
    if (hasEnded(status as RunRecord["status"])) over += count;
    else live += count;
  return [live, over];
}

/** Waits until no run is live. Returns how many have ended. */
async function allEnded(store: Store): Promise<number> {
  await expect.poll(async () => (await ended(store))[0], WAIT).toBe(0);
  return (await ended(store))[1];
}

describeOn("postgres", "the log of a store on PostgreSQL", () => {
  test(
    "has every end of sixteen workers once, with two sequencers, one of which is killed",
    { timeout: TIMEOUT },
    async () => {
      await using database = await freshDatabase("postgres");
      const { url } = database;
      const store = await open(url);
      await store.setFederated(true);
      const workers = await Promise.all(Array.from({ length: 4 }, () => startProcess(url, "workers")));
      const [first, second] = await Promise.all([startProcess(url, "sequencer"), startProcess(url, "sequencer")]);
      for (let round = 0; round < 4; round++) {
        await startOrders(url, `round-${round}`, 150);
        if (round === 1) {
          await expect.poll(() => store.logSize(), WAIT).toBeGreaterThan(50);
          await kill(first!);
        }
      }
      const third = await startProcess(url, "sequencer");
      const count = await allEnded(store);
      await expect.poll(() => store.logSize(), WAIT).toBe(count);
      await Promise.all([stop(second!), stop(third)]);
      await Promise.all(workers.map(stop));
      expect((await checkLog(store, () => false)).length).toBe(count);
      expect(count).toBeGreaterThanOrEqual(600);
      expect(await store.listEnded(1)).toEqual([]);
      expect(await new Sequencer({ store, key: KEY, ...PORTS }).sweep()).toBe(0);
      expect(await store.check()).toEqual([]);
      await store.close();
    },
  );

  test(
    "adopts 100,000 old runs, and what ends while federation is off; no run notices",
    { timeout: TIMEOUT },
    async () => {
      await using database = await freshDatabase("postgres");
      const { url } = database;
      const store = await open(url);
      const workers = await startProcess(url, "workers");
      await startOrders(url, "old", 20);
      const some = await allEnded(store);
      // Copies of a run that has ended, with numbers and ids of their own.
      await runQuery(
        url,
        `insert into reprise.runs (${COLUMNS.join(", ")})
         select ${COLUMNS.map((name) => COPIED[name] ?? name).join(", ")}
         from reprise.runs, generate_series(1, 100000) as n where id = 'old-0'`,
      );
      await store.setFederated(true);
      const sequencer = new Sequencer({ store, key: KEY, ...PORTS });
      expect(await sequencer.run()).toEqual({ sequenced: 100_000 + some, found: 100_000 + some });
      const adopted = await checkLog(store, () => true);
      expect(adopted.length).toBe(100_000 + some);
      await startOrders(url, "on", 20);
      await allEnded(store);
      await store.setFederated(false);
      await startOrders(url, "off", 20);
      await allEnded(store);
      await store.setFederated(true);
      await sequencer.sweep();
      await sequencer.run();
      expect((await ended(store))[1]).toBe(await store.logSize());
      expect(await stop(workers)).toBe(0);
      await store.close();
    },
  );
});
