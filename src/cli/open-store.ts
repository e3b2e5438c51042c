// Opening a store that is there: nothing is created, nothing is migrated, and workers may go on meanwhile.

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { RepriseError, systemClock, systemRandom, systemTimers } from "../base/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import { isServer, sqlitePathOf, storeOf, sqlite } from "../stores/index.ts";
import { payloadCodec } from "./payload-module.ts";

async function openForReading(url: string): Promise<Store> {
  const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
  // Without the codec much can still be done: list, backup, prune.
  const options = { ...machine, migrate: false, codec: payloadCodec(), locked: true };
  // How durable a server is, whoever works on it has to say; looking at it does not depend on that.
  if (isServer(url)) return storeOf(url)["~open"]({ ...options, durability: "relaxed" });
  return sqlite(fileOfStore(url))["~open"]({ ...options, durability: "full" });
}

/** The file of a store that is there. */
export function fileOfStore(url: string): string {
  const path = sqlitePathOf(url);
  if (path === ":memory:")
    throw new RepriseError(
      "BAD_STORE_URL",
      "A store in memory lives inside the process that made it; there is nothing to read here.",
    );
  checkFile(resolve(path));
  return resolve(path);
}

function checkFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined)
    throw new RepriseError(
      "BAD_STORE_URL",
      `There is no database at ${path}. Name another one with --store or REPRISE_STORE, or make it by starting a run.`,
    );
  if (!stat.isFile()) throw new RepriseError("BAD_STORE_URL", `${path} is not a file.`);
  if (stat.size === 0)
    throw new RepriseError(
      "STORE_NOT_REPRISE",
      `${path} is empty: no engine has ever used it, or its content is gone.`,
    );
}

/** Opens, does the work, closes. */
export async function reading<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openForReading(url);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The newest generation, or the one asked for. */
export async function getRun(store: Store, id: string, generation?: number): Promise<RunRecord> {
  const record = await store.findRun(id, generation);
  if (record !== undefined) return record;
  if (generation !== undefined) {
    const newest = await getRun(store, id);
    throw new RepriseError(
      "RUN_NOT_FOUND",
      `Run ${id} has no generation ${generation}; its newest is ${newest.generation}.`,
    );
  }
  throw new RepriseError(
    "RUN_NOT_FOUND",
    `There is no run ${id} in this store.${await suggestion(store, id)} \`reprise list\` shows those that are there.`,
  );
}

const LOOKED_AT = 300;
const SUGGESTED = 3;

/** Somebody typed the beginning, or copied a part. */
async function suggestion(store: Store, id: string): Promise<string> {
  const ids = (await store.listRuns({ limit: LOOKED_AT })).map((record) => record.id);
  const near = id.length < 2 ? [] : ids.filter((one) => one.toLowerCase().includes(id.toLowerCase()));
  return near.length === 0 ? "" : ` Did you mean ${near.slice(0, SUGGESTED).join(" or ")}?`;
}
