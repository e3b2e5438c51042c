// reprise restore: replaces the store's file with a backup.

import { resolve } from "node:path";
import { RepriseError, systemClock, systemRandom, systemTimers } from "../base/index.ts";
import { FileRestore, type PreparedRestore } from "../stores/maintenance/index.ts";
import { isServer, shownUrl, sqlitePathOf } from "../stores/index.ts";
import { confirm } from "./confirm.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { payloadCodec } from "./payload-module.ts";
import { createProgress } from "./progress.ts";
import { isoOf } from "./run-format.ts";
import { onInterrupt } from "./signals.ts";
import { pluralize, plain } from "./text.ts";

export interface RestoreCommandOptions extends GlobalOptions {
  readonly yes?: boolean;
  /** False for --no-keep. */
  readonly keep?: boolean;
  readonly dryRun?: boolean;
}

export async function restore(backup: string, options: RestoreCommandOptions): Promise<number> {
  const path = fileToRestore(options.store);
  const monotonic = (): number => systemClock.monotonic();
  const copying = createProgress("copying", "pages", monotonic);
  const checking = createProgress("checking", "runs", monotonic);
  const work = new FileRestore({
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    path,
    backup,
    codec: payloadCodec(),
    onCopied: (...step) => copying.at(...step),
    onChecked: (...step) => checking.at(...step),
  });
  const discard = (): void => work.discard();
  onInterrupt({
    announce: () => remark("stopped; the store was not changed"),
    cleanUp: async () => discard(),
  });
  process.once("exit", discard);
  try {
    const prepared = await work.prepare();
    copying.end();
    checking.end();
    const dryRun = options.dryRun === true;
    if (!dryRun && prepared.replaces !== undefined && !(await confirm(question(path, backup, prepared), options.yes))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const kept = dryRun ? undefined : await work.replace(options.keep !== false);
    await report(path, backup, prepared, kept, options);
    return EXIT.ok;
  } finally {
    discard();
    process.off("exit", discard);
  }
}

function fileToRestore(store: string): string {
  if (isServer(store)) throw new RepriseError("USAGE", serverText(store));
  const path = sqlitePathOf(store);
  if (path === ":memory:")
    throw new RepriseError(
      "BAD_STORE_URL",
      "A store in memory cannot be restored. Name a file: --store sqlite:shop.db.",
    );
  return resolve(path);
}

/** The steps and the exact commands of the server's own tools. */
export function serverText(store: string): string {
  const { restoring, dump } = store.startsWith("postgres") ? postgresCommands(store) : mysqlCommands(store);
  return `reprise restore replaces a SQLite file. Restore a database server with its own tools: 1. Stop every worker and client. 2. ${restoring} 3. reprise doctor --store '${shownUrl(store)}' 4. Start the workers. (Step 2 needs a dump made with: ${dump} A file made with \`reprise backup\` cannot be restored to a server.)`;
}

function postgresCommands(store: string): { readonly restoring: string; readonly dump: string } {
  const url = shownUrl(store);
  return {
    restoring: `pg_restore --clean --if-exists --single-transaction --dbname '${url}' shop.dump`,
    dump: `pg_dump --format=custom --file shop.dump '${url}'.`,
  };
}

function mysqlCommands(store: string): { readonly restoring: string; readonly dump: string } {
  const { hostname, port, username, pathname } = URL.canParse(store)
    ? new URL(store)
    : { hostname: "host", port: "", username: "user", pathname: "/shop" };
  const place = [
    `--host=${hostname}`,
    ...(port === "" ? [] : [`--port=${port}`]),
    ...(username === "" ? [] : [`--user=${decodeURIComponent(username)}`]),
    "--password",
    decodeURIComponent(pathname.slice(1)),
  ].join(" ");
  return { restoring: `mariadb ${place} < shop.sql`, dump: `mariadb-dump --single-transaction ${place} > shop.sql.` };
}

function question(path: string, backup: string, { runs, lastCommitAt }: PreparedRestore): string {
  return `Replace ${plain(path)} with ${plain(resolve(backup))} (${pluralize(runs, "run", "runs")})? Commits after ${isoOf(lastCommitAt)} will be lost.`;
}

async function report(
  path: string,
  backup: string,
  { runs, released, schema, lastCommitAt }: PreparedRestore,
  kept: string | undefined,
  options: RestoreCommandOptions,
): Promise<void> {
  const dryRun = options.dryRun === true;
  const from = resolve(backup);
  if (options.json)
    return printJson({
      file: path,
      backup: from,
      restored: !dryRun,
      dryRun,
      runs,
      lastCommitAt: isoOf(lastCommitAt),
      schema,
      released,
      kept: kept ?? null,
    });
  await print(
    `${paint("green", dryRun ? "would restore" : "restored")}  ${plain(path)}: ${pluralize(runs, "run", "runs")}, last commit ${isoOf(lastCommitAt)}`,
  );
  await print(paint("dim", `from ${plain(from)}, integrity checked`));
  const { workers, turns, items } = released;
  if (workers + turns + items > 0)
    await print(
      paint(
        "dim",
        `released the leases of ${pluralize(workers, "worker", "workers")}: ${pluralize(turns, "run", "runs")}, ${pluralize(items, "item", "items")}`,
      ),
    );
  if (schema.from < schema.to) await print(paint("dim", `migrated: schema ${schema.from} → ${schema.to}`));
  if (kept !== undefined) await print(paint("dim", `replaced file kept as: ${plain(kept)}`));
  if (!dryRun) remark(paintError("dim", "start the workers again"));
}
