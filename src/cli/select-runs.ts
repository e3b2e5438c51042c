// Select runs: the runs that a control command applies to: by id, by filter, or all of them.

import { RepriseError } from "../base/index.ts";
import { RUN_STATUSES, type RunRecord, type RunStatus, type Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { getRun } from "./open-store.ts";

export interface SelectOptions extends GlobalOptions {
  readonly status?: readonly string[];
  readonly definition?: string;
  readonly tag?: readonly string[];
  readonly all?: boolean;
}

const PAGE = 500;

export function checkStatuses(statuses: readonly string[] | undefined): readonly RunStatus[] | undefined {
  return statuses?.map((status) => {
    const known = RUN_STATUSES.find((one) => one === status);
    if (known !== undefined) return known;
    throw new RepriseError(
      "BAD_OPTIONS",
      `--status: ${JSON.stringify(status)} is not a status. Use one of ${RUN_STATUSES.join(", ")}.`,
    );
  });
}

/** Refuses an empty or contradictory selection before the store is opened. */
export function checkSelection(verb: string, ids: readonly string[], options: SelectOptions): void {
  const filters = [options.status, options.definition, options.tag].filter((filter) => filter !== undefined);
  if (ids.length > 0 && (filters.length > 0 || options.all === true))
    throw new RepriseError("USAGE", `${verb}: select runs by id or by filter, not both.`);
  if (filters.length > 0 && options.all === true)
    throw new RepriseError("USAGE", `${verb}: --all selects every run. Remove --all or the filter.`);
  if (ids.length === 0 && filters.length === 0 && options.all !== true)
    throw new RepriseError(
      "USAGE",
      `${verb}: no run is selected. Name run ids, or select runs with --definition, --status, --tag or --all.`,
    );
}

/** The selected runs, oldest first. A filter selects only runs in one of `statuses`. */
export async function selectRuns(
  store: Store,
  ids: readonly string[],
  options: SelectOptions,
  statuses: readonly RunStatus[],
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
      ...(options.tag !== undefined && { tags: options.tag }),
      ...(before !== undefined && { before }),
      limit: PAGE,
    });
    records.push(...page);
    if (page.length < PAGE) return records.toReversed();
    before = page.at(-1)?.run;
  }
}
