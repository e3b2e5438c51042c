// Bundle history: the entries of bundled runs, and those that forks share with their origins (fork.F5).

import type { Entry } from "../kernel/index.ts";
import type { HistorySource } from "../workflow/index.ts";
import type { BundleReport } from "./check-bundle.ts";

/** The entries of a section up to a number; none without payloads. */
export async function bundledEntries(
  { journal }: BundleReport,
  upTo: number = Number.POSITIVE_INFINITY,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const page of journal?.pages() ?? []) {
    entries.push(...page);
    if (entries.length >= upTo) break;
  }
  return entries.slice(0, upTo);
}

/** The runs of some sections as a source of histories; the number of a run is its place. */
export function bundleHistory(reports: readonly BundleReport[]): HistorySource {
  return {
    findRun: async (id, generation) => {
      const place = reports.findIndex(({ run }) => run.id === id && run.generation === generation);
      return place === -1 ? undefined : { run: place, id, generation };
    },
    readJournal: async (place, after, limit = Number.POSITIVE_INFINITY) =>
      (await bundledEntries(reports[place]!, after + limit)).slice(after),
  };
}
