// reprise verify: checks runs of a store and bundles, prints a verdict for each, and exits with the one that counts.

import { writeFile } from "node:fs/promises";
import { RepriseError, systemClock } from "../base/index.ts";
import { guardMode, JournalReplayer, registryOf } from "../engine/index.ts";
import type { RunRecord, Store } from "../kernel/index.ts";
import { worstOf, type Verdict, type VerifyLevel } from "../receipts/index.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import type { HomeOptions } from "./home.ts";
import { junitText } from "./junit.ts";
import { admittedKeys } from "./keys.ts";
import { checkWorkflow, loadDefinitions, type Loaded } from "./load-definitions.ts";
import { findInMirrors } from "./mirrors.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import type { OpenBundleOptions } from "./open-bundle.ts";
import { remark } from "./output.ts";
import { createProgress } from "./progress.ts";
import { Bundles, isBundleFile, targetError } from "./verify-bundle.ts";
import { printReport } from "./verify-report.ts";
import { readStoredRun, verdictOfRun, type Checks, type VerifiedRun } from "./verify-stored-run.ts";

export interface VerifyOptions extends GlobalOptions, HomeOptions, OpenBundleOptions {
  readonly all?: boolean;
  readonly code?: string;
  readonly level?: number;
  readonly key?: readonly string[];
  readonly junit?: string;
  readonly last?: number;
  readonly definition?: string;
  readonly generation?: number;
}

const EXIT_OF: Readonly<Record<Verdict["status"], number>> = {
  verified: EXIT.ok,
  damaged: EXIT.damaged,
  forked: EXIT.damaged,
  unsigned: EXIT.untrusted,
  untrusted: EXIT.untrusted,
  code_differs: EXIT.determinism,
  impure: EXIT.impure,
  incomplete: EXIT.incomplete,
  erased: EXIT.incomplete,
  inconclusive: EXIT.inconclusive,
};

export function exitCodeOf(verdict: Verdict): number {
  return EXIT_OF[verdict.status];
}

export async function verify(given: readonly string[], options: VerifyOptions): Promise<number> {
  const { targets, code } = withoutCode(given, options);
  checkOptions(targets, code, options);
  const definitions = code === undefined ? undefined : await loadDefinitions(code);
  using replayer = definitions && new JournalReplayer(registryOf(definitions), guardMode(undefined));
  const found = { definitions, replayer, codeFile: code };
  const files = targets.filter((target) => isBundleFile(target));
  const ids = targets.filter((target) => !files.includes(target));
  const verified = [
    ...(files.length > 0 ? await verifyBundles(files, found, options) : []),
    ...(ids.length > 0 || options.all === true
      ? await verifyRuns(ids, found, options).catch((error: unknown) => {
          throw targetError(error, ids);
        })
      : []),
  ];
  if (verified.length === 0) {
    remark("No run matches, so nothing was verified.");
    return EXIT.problem;
  }
  const exitCode = exitCodeOf(worstOf(verified.map(({ verdict }) => verdict))!);
  if (options.junit !== undefined) await writeJunit(options.junit, verified);
  await printReport(verified, exitCode, options.json, exitCodeOf);
  return exitCode;
}

/** The code of --code. */
interface Code extends Pick<Checks, "replayer" | "codeFile"> {
  readonly definitions: Loaded | undefined;
}

async function verifyBundles(
  files: readonly string[],
  code: Pick<Checks, "replayer" | "codeFile">,
  options: VerifyOptions,
): Promise<readonly VerifiedRun[]> {
  const levels = levelsUpTo(options.level ?? 1, code.codeFile, [0, 1, 2, 3, 4]);
  await using bundles = await Bundles.open(files, admittedKeys(options), levels, options);
  const progress = createProgress("verifying", "runs", () => systemClock.monotonic());
  const verified: VerifiedRun[] = [];
  for await (const run of bundles.runs()) {
    progress.at(verified.length, bundles.size);
    verified.push(await verdictOfRun(run, { replayer: code.replayer, codeFile: code.codeFile, levels }));
  }
  progress.end();
  return verified;
}

async function verifyRuns(
  ids: readonly string[],
  { definitions, ...code }: Code,
  options: VerifyOptions,
): Promise<readonly VerifiedRun[]> {
  const checks: Checks = { levels: storeLevels(options.level, code.codeFile), ...code };
  const verified: VerifiedRun[] = [];
  for (const [url, names] of await byStore(ids, options))
    await withStoreToRead(url, async (store) => {
      const records = await selectRecords(store, names, options);
      for (const { definition } of options.all === true ? [] : records)
        if (definitions !== undefined) checkWorkflow(definitions, definition, code.codeFile!);
      verified.push(...(await verifyRecords(store, records, checks)));
    });
  return verified;
}

/** The ids by the store they are in: that of the command line, or a mirror (`prod/order-7`). */
async function byStore(ids: readonly string[], options: VerifyOptions): Promise<Map<string, readonly string[]>> {
  const stores = new Map<string, string[]>(options.all === true ? [[options.store, []]] : []);
  for (const name of ids) {
    const { url = options.store, id = name } = (await findInMirrors(options, name)) ?? {};
    stores.set(url, [...(stores.get(url) ?? []), id]);
  }
  return stores;
}

async function writeJunit(file: string, verified: readonly VerifiedRun[]): Promise<void> {
  try {
    await writeFile(file, junitText(verified));
  } catch (cause) {
    throw new RepriseError("USAGE", `--junit: ${file} cannot be written: ${(cause as Error).message}.`, { cause });
  }
}

const CODE_FILE = /\.[cm]?[jt]sx?$/;

/** `verify <run> <file>` is short for `verify <run> --code <file>`. */
function withoutCode(
  given: readonly string[],
  { code }: VerifyOptions,
): { readonly targets: readonly string[]; readonly code: string | undefined } {
  const [target, file] = given;
  if (code !== undefined || given.length !== 2 || !CODE_FILE.test(file!)) return { targets: given, code };
  return { targets: [target!], code: file };
}

function checkOptions(targets: readonly string[], code: string | undefined, options: VerifyOptions): void {
  const { all = false, level = 0, last, definition, generation } = options;
  const refuse = (message: string): never => {
    throw new RepriseError("USAGE", `verify: ${message}`);
  };
  if (all && targets.length > 0) refuse("--all selects every run. Remove --all, or the runs and files.");
  if (!all && targets.length === 0) refuse("name runs or files, or select every run of the store with --all.");
  if (!all && (last !== undefined || definition !== undefined))
    refuse("--last and --definition narrow --all. Add --all.");
  const stray = targets.find((target) => CODE_FILE.test(target));
  if (stray !== undefined) refuse(`${stray} is code, not a run or a bundle. Name it with --code ${stray}.`);
  if (generation !== undefined && (all || targets.length > 1)) refuse("--generation needs exactly one run.");
  if (level > 4) refuse(`--level: expected 0 to 4, got ${level}.`);
  if (level >= 3 && code === undefined) refuse(`level ${level} replays runs with code. Add --code <file>.`);
}

/** A store has no signatures, so its runs are not checked for authenticity. */
function storeLevels(level: number | undefined, code: string | undefined): readonly VerifyLevel[] {
  if (level === 1)
    throw new RepriseError(
      "USAGE",
      "verify: level 1 checks the signature of a bundle; the runs of a store have none. Use --level 0 or 2, or make a bundle first: reprise bundle <run> -o <file>",
    );
  return levelsUpTo(level ?? 0, code, [0, 2, 3, 4]);
}

/** Code adds level 3. */
function levelsUpTo(level: number, code: string | undefined, possible: readonly VerifyLevel[]): readonly VerifyLevel[] {
  return possible.filter((one) => one <= level || (one === 3 && code !== undefined));
}

const PAGE = 500;

/** The named runs, or for --all every run, oldest first. */
async function selectRecords(
  store: Store,
  targets: readonly string[],
  { all, last = Number.POSITIVE_INFINITY, definition, generation }: VerifyOptions,
): Promise<readonly RunRecord[]> {
  const records: RunRecord[] = [];
  if (all !== true) {
    for (const id of new Set(targets)) records.push(await getRun(store, id, generation));
    return records;
  }
  for (let before: number | undefined; records.length < last;) {
    const limit = Math.min(PAGE, last - records.length);
    const page = await store.listRuns({
      ...(definition !== undefined && { definition }),
      ...(before !== undefined && { before }),
      limit,
    });
    // An expected run has received messages and was not started: it has no journal.
    records.push(...page.filter(({ status }) => status !== "expected"));
    if (page.length < limit) break;
    before = page.at(-1)?.run;
  }
  return records.toReversed();
}

async function verifyRecords(
  store: Store,
  records: readonly RunRecord[],
  checks: Checks,
): Promise<readonly VerifiedRun[]> {
  const progress = createProgress("verifying", "runs", () => systemClock.monotonic());
  const verified: VerifiedRun[] = [];
  try {
    for (const record of records) {
      progress.at(verified.length, records.length);
      verified.push(await verdictOfRun(await readStoredRun(store, record, checks.levels), checks));
    }
    return verified;
  } finally {
    progress.end();
  }
}
