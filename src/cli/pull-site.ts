// reprise pull of a peer or a carrier: takes logs and contents into the home and, with ids, brings these runs into a mirror.
//
// pull-site.P1. A run is checked as a bundle is before anything of it is visible: its log and the key of its site vouch for it.
// pull-site.P2. The mirror has the name of the peer that the run is of, or that of --as.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RepriseError } from "../base/index.ts";
import { checkBundleWithLog, readSettings, type Federation } from "../federation/index.ts";
import type { BundleInput, BundleReport } from "../receipts/index.ts";
import type { CopiedRun, PutOutcome } from "../stores/maintenance/index.ts";
import { copyOfBundle } from "./bundle-copy.ts";
import { suggest } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import { homeOf } from "./home.ts";
import { admittedKeys } from "./keys.ts";
import { checkMirrorName } from "./mirrors.ts";
import { startProgress, withFederation } from "./open-federation.ts";
import { shellWord } from "./next-command.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { report, withMirror, type PullOptions } from "./pull.ts";
import { reportSync } from "./push.ts";
import { plain, pluralize } from "./text.ts";

const DEFAULT_LAST = 200;

export async function pullSite(source: string, ids: readonly string[], options: PullOptions): Promise<number> {
  for (const option of ["family", "moved"] as const)
    if (options[option] === true)
      throw new RepriseError("USAGE", `pull: --${option} is for a store; ${source} is a peer or a carrier.`);
  return withFederation(options, { store: "optional" }, async (site) => {
    const progress = startProgress("pulling", "records");
    const reports = await site
      .pull(source, { onProgress: (...step) => progress.at(...step) })
      .finally(() => progress.end());
    const selected = ids.length > 0 ? ids : await newestRuns(site, options);
    if (selected === undefined || reports.some(({ error }) => error !== undefined)) {
      const code = await reportSync(reports, "pulled", options);
      if (selected === undefined && code === EXIT.ok && !options.json)
        remark(`  ${paint("dim", "next:")} reprise pull ${plain(shellWord(source))} --last 20`);
      return code;
    }
    return options.out === undefined
      ? pullRuns(site, source, selected, options)
      : writeBundles(site, source, selected, options, options.out);
  });
}

/** Undefined: no runs are asked for. */
async function newestRuns(
  site: Federation,
  { last, definition, out }: PullOptions,
): Promise<readonly string[] | undefined> {
  if (last === undefined && definition === undefined && out === undefined) return undefined;
  const found = await site.runs(definition === undefined ? {} : { definition });
  const foreign = found.filter(({ origin }) => !origin.startsWith(site.origin));
  return [...new Set(foreign.map(({ id }) => id))].slice(-(last ?? DEFAULT_LAST));
}

/** pull-site.P1 */
async function pullRuns(
  site: Federation,
  source: string,
  ids: readonly string[],
  options: PullOptions,
): Promise<number> {
  const outcomes = new Map<string, PutOutcome[]>();
  for (const id of ids) {
    const lines = await suggest(notFound(source), site.bundle(id, { from: source }));
    const { copies, origin } = await checkedCopies(id, lines, options);
    const name = checkMirrorName(options.as ?? mirrorNameOf(origin, options));
    const put = await withMirror(name, options, async (mirror) => {
      const known = mirror.info.origin;
      if (known !== undefined && known !== origin)
        throw new RepriseError(
          "BAD_OPTIONS",
          `Run ${id} is of the origin ${origin}, and the mirror ${name} is of ${known}. Pull it under another name: --as <name>.`,
          { details: { origin, mirror: name } },
        );
      const done = await mirror.put(copies);
      if (known === undefined) await mirror.describe({ origin });
      return done;
    });
    outcomes.set(name, [...(outcomes.get(name) ?? []), ...put]);
  }
  for (const [name, put] of outcomes) await report("pulled", name, put, options);
  return EXIT.ok;
}

const notFound = (source: string) => ({ RUN_NOT_FOUND: `reprise pull ${shellWord(source)} --last 20` });

/** pull-site.P2 */
function mirrorNameOf(origin: string, options: PullOptions): string {
  const peers = Object.entries(readSettings(homeOf(options)).peers ?? {});
  const named = peers.find(([, { vkey }]) => vkey.startsWith(`${origin}+`))?.[0];
  return named ?? origin.split("/")[0]!;
}

async function checkedCopies(
  id: string,
  lines: readonly string[],
  options: PullOptions,
): Promise<{ readonly copies: readonly CopiedRun[]; readonly origin: string }> {
  const copies: CopiedRun[] = [];
  let origin = "";
  for await (const found of checkBundleWithLog(inputOf(lines), admittedKeys(options))) {
    if (found.problem !== undefined) throw damaged(id, found.problem.message);
    if (found.signature.status !== "trusted")
      throw damaged(id, `no admitted key vouches for it (${found.signature.status})`);
    ({ origin } = found.signature);
    copies.push(await copyOfBundle(found, id));
  }
  return { copies, origin };
}

function inputOf(lines: readonly string[]): BundleInput {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  return {
    async *read(from) {
      yield bytes.subarray(from);
    },
  };
}

function damaged(id: string, why: NonNullable<BundleReport["problem"]>["message"]): RepriseError {
  return new RepriseError("BUNDLE_DAMAGED", `Run ${id} was not taken: ${why.replace(/\.$/, "")}.`, {
    details: { run: id },
  });
}

async function writeBundles(
  site: Federation,
  source: string,
  ids: readonly string[],
  options: PullOptions,
  folder: string,
): Promise<number> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  let entries = 0;
  for (const id of ids) {
    const lines = await suggest(notFound(source), site.bundle(id, { from: source }));
    const file = join(folder, `${encodeURIComponent(id)}.jsonl`);
    writeFileSync(file, lines.map((line) => `${line}\n`).join(""), { mode: 0o600 });
    entries += lines.length;
    if (options.json) await printJson({ id, file, lines: lines.length });
  }
  if (!options.json) {
    await print(
      `${paint("green", "wrote")} ${pluralize(ids.length, "bundle", "bundles")} (${pluralize(entries, "line", "lines")}) into ${plain(folder)}`,
    );
    remark(`  ${paint("dim", "next:")} reprise verify ${plain(join(folder, "*.jsonl"))}`);
  }
  return EXIT.ok;
}
