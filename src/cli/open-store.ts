// Open store: opens an existing store without creating or migrating it. Workers can run at the same time.

import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { RepriseError, systemClock, systemRandom, systemTimers } from "../base/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import { isServer, sqlitePathOf, storeOf, sqlite } from "../stores/index.ts";
import type { WaitReason } from "../explain/index.ts";
import { CommandError } from "./command-error.ts";
import { shellWord } from "./next-command.ts";
import { payloadCodec } from "./payload-module.ts";

/** The caller closes it. */
export async function openExisting(url: string, readOnly: boolean): Promise<Store> {
  const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
  // `locked`: list, backup and prune work without the codec.
  const options = { ...machine, migrate: false, readOnly, codec: payloadCodec(), locked: true };
  // Reading does not depend on durability; a server that is not configured for "full" would be refused.
  if (isServer(url)) return storeOf(url)["~open"]({ ...options, durability: "relaxed" });
  return sqlite(fileOfStore(url))["~open"]({ ...options, durability: "full" });
}

/** The path of an existing SQLite store. */
export function fileOfStore(url: string): string {
  const path = sqlitePathOf(url);
  if (path === ":memory:")
    throw new RepriseError(
      "BAD_STORE_URL",
      "A store in memory exists only inside its process. Name a file with --store, such as --store sqlite:shop.db.",
    );
  checkFile(resolve(path), url);
  return resolve(path);
}

function checkFile(path: string, url: string): void {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined && !existsSync(dirname(path)))
    throw new CommandError(
      "STORE_FOLDER_MISSING",
      `There is no database at ${path}, and no folder ${dirname(path)}. Check the path, or start a run, which creates both with ?mkdir=1 in the store URL.`,
      `reprise run <file> <workflow> --store ${shellWord(`${url}${url.endsWith("?mkdir=1") ? "" : "?mkdir=1"}`)}`,
    );
  if (stat === undefined)
    throw new CommandError(
      "BAD_STORE_URL",
      `There is no database at ${path}. Name an existing one with --store or REPRISE_STORE, or start a run, which creates it.`,
      "reprise run <file> <workflow>",
    );
  if (!stat.isFile()) throw new RepriseError("BAD_STORE_URL", `${path} is not a file.`);
  if (stat.size === 0)
    throw new CommandError(
      "STORE_NOT_REPRISE",
      `${path} is empty, so it is not a Reprise store. Name another file with --store, or restore a backup.`,
      "reprise restore <backup-file>",
    );
}

/** Opens the store to write, does the work and closes the store. */
export function withStore<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  return withOpened(openExisting(url, false), work);
}

/** Opens the store to read: nothing is written, so a read-only file will do. */
export function withStoreToRead<T>(url: string, work: (store: Store) => Promise<T>): Promise<T> {
  return withOpened(openExisting(url, true), work);
}

async function withOpened<T>(opening: Promise<Store>, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await opening;
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The latest generation of the run, or the given one. */
export async function getRun(store: Store, id: string, generation?: number): Promise<RunRecord> {
  const record = await store.findRun(id, generation);
  if (record !== undefined) return record;
  if (generation !== undefined) {
    const latest = await getRun(store, id);
    throw new CommandError(
      "RUN_NOT_FOUND",
      `Run ${id} has no generation ${generation}; its latest is ${latest.generation}.`,
      `reprise show ${shellWord(id)}`,
    );
  }
  const planned = await plannedReason(store, id);
  throw new CommandError(
    "RUN_NOT_FOUND",
    `There is no run ${id} in this store.${planned === undefined ? await suggestion(store, id) : ` ${planned.text}`}`,
    planned?.next[0] ?? "reprise list",
  );
}

/** Why the schedule that the id names has not started it: `nightly/2026-11-18T02:00:00Z`. */
async function plannedReason(store: Store, id: string): Promise<WaitReason | undefined> {
  const end = id.lastIndexOf("/");
  const schedule = end <= 0 ? undefined : await store.findSchedule(id.slice(0, end));
  if (schedule === undefined) return undefined;
  const { explainSchedule } = await import("../explain/index.ts");
  return (await explainSchedule(store, schedule))[0];
}

const SEARCHED_RUNS = 300;
const SUGGESTED = 3;

/** Suggests recent runs whose id contains the given text. */
async function suggestion(store: Store, id: string): Promise<string> {
  const ids = (await store.listRuns({ limit: SEARCHED_RUNS })).map((record) => record.id);
  const near = id.length < 2 ? [] : ids.filter((one) => one.toLowerCase().includes(id.toLowerCase()));
  return near.length === 0 ? "" : ` Did you mean ${near.slice(0, SUGGESTED).join(" or ")}?`;
}
