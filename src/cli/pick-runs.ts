// Picking runs for a command that takes many: by id, by filter, or all of them.

import { RepriseError } from "../base/index.ts";
import { STATUSES, type RunRecord, type Status, type Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun } from "./open-store.ts";

export interface PickOptions extends GlobalOptions {
  readonly status?: readonly string[];
  readonly definition?: string;
  readonly tag?: string;
  readonly all?: boolean;
}

const PAGE = 500;

export function checkStatuses(statuses: readonly string[] | undefined): readonly Status[] | undefined {
  return statuses?.map((status) => {
    const known = STATUSES.find((one) => one === status);
    if (known !== undefined) return known;
    throw new RepriseError(
      "BAD_OPTIONS",
      `--status: expected one of ${STATUSES.join(", ")}; got ${JSON.stringify(status)}.`,
    );
  });
}

/** Refuses, before the store is opened, what names nothing or names it twice. */
export function checkPick(verb: string, ids: readonly string[], options: PickOptions): void {
  const filters = [options.status, options.definition, options.tag].filter((filter) => filter !== undefined);
  if (ids.length > 0 && (filters.length > 0 || options.all === true))
    throw new RepriseError("USAGE", `${verb}: name runs by their ids or by a filter, not by both.`);
  if (filters.length > 0 && options.all === true)
    throw new RepriseError("USAGE", `${verb}: --all means every run; leave out either it or the filter.`);
  if (ids.length === 0 && filters.length === 0 && options.all !== true)
    throw new RepriseError(
      "USAGE",
      `${verb}: name at least one run, or choose with --definition, --status, --tag or --all.`,
    );
}

/** The runs as they stand now, oldest first; those in none of `statuses` are left out when a filter chose them. */
export async function pickRuns(
  store: Store,
  ids: readonly string[],
  options: PickOptions,
  statuses: readonly Status[],
): Promise<RunRecord[]> {
  if (ids.length > 0) {
    const records: RunRecord[] = [];
    for (const id of new Set(ids)) records.push(await getRun(store, id));
    return records;
  }
  const wanted = checkStatuses(options.status);
  const records: RunRecord[] = [];
  for (let before: number | undefined; ;) {
    const page = await store.listRuns({
      statuses: wanted === undefined ? statuses : wanted.filter((status) => statuses.includes(status)),
      ...(options.definition !== undefined && { definition: options.definition }),
      ...(options.tag !== undefined && { tag: options.tag }),
      ...(before !== undefined && { before }),
      limit: PAGE,
    });
    records.push(...page);
    if (page.length < PAGE) return records.toReversed();
    before = page.at(-1)?.run;
  }
}
