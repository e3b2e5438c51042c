// reprise archive and erase: history that outlives the store, and history that must not.

import { formatMs, toMs } from "../base/index.ts";
import { suggest } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { confirm } from "./confirm.ts";
import type { PruneCommandOptions } from "./maintenance.ts";
import { startProgress, withFederation } from "./open-federation.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { plain, pluralize } from "./text.ts";

export type HistoryOptions = GlobalOptions;

export interface EraseOptions extends GlobalOptions {
  readonly reason: string;
  readonly all?: boolean;
  readonly yes?: boolean;
}

export function archive(carrier: string | undefined, options: HistoryOptions): Promise<number> {
  return withFederation(options, {}, async (site) => {
    const progress = startProgress("archiving", "records");
    const report = await site
      .archive(carrier, { onProgress: (...step) => progress.at(...step) })
      .finally(() => progress.end());
    if (options.json) await printJson(report);
    else {
      const { runs, records } = report;
      await print(
        `${paint("green", "archived")} ${pluralize(runs, "run", "runs")}, ${pluralize(records, "record", "records")} on ${plain(report.carrier)}`,
      );
      if (runs > 0) remark(`  ${paint("dim", "next:")} reprise prune --archived --older-than 30d --dry-run`);
    }
    return EXIT.ok;
  });
}

/** Only what the archive has. */
export function pruneArchived(options: PruneCommandOptions): Promise<number> {
  const { olderThan, dryRun = false, yes } = options;
  const ageMs = toMs(olderThan, "--older-than");
  return withFederation(options, {}, async (site) => {
    const found = await site.pruneArchived({ olderThan: ageMs, dryRun: true });
    const what = `${pluralize(found.runs, "run", "runs")} that ended more than ${formatMs(ageMs)} ago and are archived`;
    if (!dryRun && found.runs > 0 && !(await confirm(`Delete ${what}, and their journals?`, yes))) {
      remark("Nothing was changed.");
      return EXIT.problem;
    }
    const { runs } = dryRun ? found : await site.pruneArchived({ olderThan: ageMs });
    if (options.json) await printJson({ runs, dryRun });
    else await print(`${paint("green", dryRun ? "would delete" : "deleted")} ${what}`);
    return EXIT.ok;
  });
}

const KEY = /^[0-9a-f]{64}$/;

export async function erase(what: string, options: EraseOptions): Promise<number> {
  const { reason, all = false } = options;
  const target = KEY.test(what) ? `the content ${what}` : `the journal and values of run ${plain(what)}`;
  if (!(await confirm(`Erase ${target} on every site, for good?`, options.yes, ""))) {
    remark("Nothing was changed.");
    return EXIT.problem;
  }
  return withFederation(options, { store: KEY.test(what) ? "optional" : "required" }, async (site) => {
    const { cells, runs } = await suggest({ RUN_NOT_FOUND: "reprise list" }, site.erase(what, { reason, all }));
    if (options.json) await printJson({ what, cells, runs, reason });
    else {
      await print(
        cells.length === 0 && runs === 0
          ? "Nothing to erase: it was erased before."
          : `${paint("green", "erased")} ${pluralize(cells.length, "content", "contents")}${runs === 0 ? "" : `, deleted ${pluralize(runs, "run", "runs")} of the store`}; the records of the log stay`,
      );
      remark(`  ${paint("dim", "next:")} reprise push`);
    }
    return EXIT.ok;
  });
}
