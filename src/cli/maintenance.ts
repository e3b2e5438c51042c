// Maintenance: the work of migrate, prune, backup and rekey.

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { formatMs, RepriseError, systemClock, systemRandom, systemTimers, toMs, type Duration } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import { backUpFile, readSchema } from "../stores/maintenance/index.ts";
import { isServer, shownUrl, storeOf, sqlite, threadsOf } from "../stores/index.ts";
import { confirm } from "./confirm.ts";
import type { GlobalOptions } from "./global-options.ts";
import { fileOfStore, withStore, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { payloadCodec } from "./payload-module.ts";
import { createProgress, type Progress } from "./progress.ts";
import { isoOf } from "./run-format.ts";
import { pluralize, plain, sizeText } from "./text.ts";

const MACHINE = { clock: systemClock, timers: systemTimers, random: systemRandom };

function startProgress(verb: string, unit: string): Progress {
  return createProgress(verb, unit, () => systemClock.monotonic());
}

export interface MigrateOptions extends GlobalOptions {
  /** A path, or false for --no-backup. */
  readonly backup?: string | false;
  readonly dryRun?: boolean;
}

/** Copies the file first, because a migration cannot be undone. */
export async function migrate(options: MigrateOptions): Promise<number> {
  if (isServer(options.store)) return migrateServer(options);
  const path = fileOfStore(options.store);
  const { from, to } = await readSchema(MACHINE, path);
  const dryRun = options.dryRun === true;
  const due = from < to;
  const copy = due && options.backup !== false ? resolve(options.backup ?? `${path}.schema-${from}.backup`) : undefined;
  if (due && !dryRun) {
    if (copy !== undefined) {
      const progress = startProgress("copying", "pages");
      await backUpFile(MACHINE, path, copy, (done, total) => progress.at(done, total));
      progress.end();
    }
    const given = { ...MACHINE, codec: payloadCodec(), locked: true, durability: "full", migrate: true } as const;
    await (await sqlite(path)["~open"](given)).close();
  }
  if (options.json)
    await printJson({ location: path, from, to, migrated: due && !dryRun, dryRun, backup: copy ?? null });
  else if (!due) await print(`${paint("green", "up to date")}  ${plain(path)} has schema ${to}`);
  else {
    await print(`${paint("green", dryRun ? "would migrate" : "migrated")}  ${plain(path)}: schema ${from} → ${to}`);
    if (copy !== undefined)
      await print(paint("dim", `${dryRun ? "would first copy the file to" : "copy of the old file:"} ${plain(copy)}`));
    if (!dryRun) remark(paintError("dim", RESTART_WORKERS));
  }
  return EXIT.ok;
}

/** Makes no copy: the tools of the server do that better. */
async function migrateServer(options: MigrateOptions): Promise<number> {
  if (typeof options.backup === "string")
    throw new RepriseError(
      "USAGE",
      `migrate --backup copies a SQLite file. Dump a database server with its own tools (${DUMP_TOOLS}) before you migrate.`,
    );
  const dryRun = options.dryRun === true;
  const schema = await serverSchema(options.store);
  const { location, from, to } = schema;
  const migrated = from < to && !dryRun;
  if (migrated) await (await openServer(options.store, true)).close();
  if (options.json) await printJson({ location, from, to, migrated, dryRun, backup: null });
  else {
    const { done, notes } = describeMigration(schema, dryRun);
    await print(done);
    for (const note of notes) remark(paintError("dim", note));
  }
  return EXIT.ok;
}

interface ServerSchema {
  readonly location: string;
  readonly from: number;
  readonly to: number;
}

const DUMP_TOOLS = "pg_dump, mariadb-dump";
const RESTART_WORKERS = "restart all workers with this version: older versions cannot use the new schema";

function openServer(url: string, mayMigrate: boolean): Promise<Store> {
  const given = { ...MACHINE, codec: payloadCodec(), locked: true, durability: "relaxed" } as const;
  return storeOf(url)["~open"]({ ...given, migrate: mayMigrate });
}

/** Reads the schema of the store and the schema this version needs; writes nothing. */
async function serverSchema(url: string): Promise<ServerSchema> {
  try {
    const store = await openServer(url, false);
    try {
      const { location, schemaVersion } = await store.info();
      return { location, from: schemaVersion, to: schemaVersion };
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof RepriseError) || error.code !== "STORE_OLDER_SCHEMA") throw error;
    const { found, needed } = error.details as { readonly found: number; readonly needed: number };
    return { location: shownUrl(url), from: found, to: needed };
  }
}

export function describeMigration(
  { location, from, to }: ServerSchema,
  dryRun: boolean,
): { readonly done: string; readonly notes: readonly string[] } {
  const where = plain(location);
  if (from === to) return { done: `${paint("green", "up to date")}  ${where} has schema ${to}`, notes: [] };
  if (from === 0)
    return {
      done: `${paint("green", dryRun ? "would create" : "created")}  the tables of schema ${to} in ${where}`,
      notes: [],
    };
  return {
    done: `${paint("green", dryRun ? "would migrate" : "migrated")}  ${where}: schema ${from} → ${to}`,
    notes: dryRun
      ? [`migrate does not copy a database server; dump it first (${DUMP_TOOLS})`]
      : ["no copy of the database was made", RESTART_WORKERS],
  };
}

export interface PruneCommandOptions extends GlobalOptions {
  readonly olderThan: Duration;
  readonly threads?: boolean;
  /** Only runs that an archive has. */
  readonly archived?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

export async function prune(options: PruneCommandOptions): Promise<number> {
  const ageMs = toMs(options.olderThan, "--older-than");
  const dryRun = options.dryRun === true;
  if (options.threads === true && options.archived === true)
    throw new RepriseError("USAGE", "prune: --threads deletes threads and --archived deletes runs. Pass one of them.");
  if (options.threads === true) return pruneThreads(options, ageMs, dryRun);
  if (options.archived === true) return (await import("./history.ts")).pruneArchived(options);
  return withStore(options.store, async (store) => {
    const endedBefore = store.now() - ageMs;
    const counting = startProgress("checking", "runs");
    const { runs: found } = await store.prune(endedBefore, {
      dryRun: true,
      onProgress: (...step) => counting.at(...step),
    });
    counting.end();
    const what = `${pluralize(found, "run", "runs")} that ended more than ${formatMs(ageMs)} ago`;
    if (!dryRun && found > 0 && !(await confirm(`Delete ${what}, and their journals?`, options.yes))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const progress = startProgress("pruning", "runs");
    const runs = dryRun
      ? found
      : (await store.prune(endedBefore, { onProgress: (...step) => progress.at(...step) })).runs;
    progress.end();
    if (options.json) await printJson({ runs, endedBefore: isoOf(endedBefore), dryRun });
    else
      await print(
        `${paint("green", dryRun ? "would delete" : "deleted")} ${runs === found ? what : pluralize(runs, "run", "runs")}`,
      );
    return EXIT.ok;
  });
}

async function pruneThreads(options: PruneCommandOptions, ageMs: number, dryRun: boolean): Promise<number> {
  return withStore(options.store, async (store) => {
    const storedBefore = store.now() - ageMs;
    const found = await expireThreads(store, storedBefore, true);
    const what = `${pluralize(found, "thread", "threads")} without a checkpoint for ${formatMs(ageMs)}`;
    if (!dryRun && found > 0 && !(await confirm(`Delete ${what}?`, options.yes))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const threads = dryRun ? found : await expireThreads(store, storedBefore, false);
    if (options.json) await printJson({ threads, storedBefore: isoOf(storedBefore), dryRun });
    else
      await print(
        `${paint("green", dryRun ? "would delete" : "deleted")} ${threads === found ? what : pluralize(threads, "thread", "threads")}`,
      );
    return EXIT.ok;
  });
}

async function expireThreads(store: Store, storedBefore: number, dryRun: boolean): Promise<number> {
  let count = 0;
  for (let after: string | undefined; ;) {
    const batch = await threadsOf(store).expire({ storedBefore, after, dryRun });
    count += batch.threads;
    if (batch.after === undefined) return count;
    ({ after } = batch);
  }
}

export async function backup(target: string, options: GlobalOptions): Promise<number> {
  return withStoreToRead(options.store, async (store) => {
    const path = resolve(target);
    const progress = startProgress("copying", "pages");
    await store.backup(path, (done, total) => progress.at(done, total));
    progress.end();
    const bytes = statSync(path).size;
    if (options.json) await printJson({ file: path, bytes });
    else await print(`${paint("green", "copied")} to ${plain(path)} (${sizeText(bytes)})`);
    return EXIT.ok;
  });
}

/** Returns exit code 1 if some payloads could not be read: they still need the old keys. */
export async function rekey(options: GlobalOptions): Promise<number> {
  const codec = payloadCodec();
  if (codec === undefined)
    throw new RepriseError("BAD_OPTIONS", "rekey needs --codec <file>: a module that exports `codec`.");
  const progress = startProgress("re-encrypting", "payloads");
  // Opened for writing: the store records the new key.
  const store = isServer(options.store)
    ? await storeOf(options.store)["~open"]({ ...MACHINE, codec, durability: "relaxed" })
    : await sqlite(fileOfStore(options.store))["~open"]({ ...MACHINE, codec, durability: "full" });
  try {
    const { payloads, unreadable } = await store.rekey((done, total) => progress.at(done, total));
    progress.end();
    if (options.json) await printJson({ codec: codec.name, payloads, unreadable });
    else {
      const what = pluralize(payloads, "payload", "payloads");
      await print(`${paint("green", "re-encrypted")}  ${what} with ${plain(codec.name)}`);
      if (unreadable > 0)
        remark(
          paintError(
            "yellow",
            `${pluralize(unreadable, "payload", "payloads")} could not be decrypted; keep the old keys`,
          ),
        );
    }
    return unreadable === 0 ? EXIT.ok : EXIT.problem;
  } finally {
    await store.close();
  }
}
