// The runs that a filter selects, page by page, newest first.

import { inspect } from "node:util";
import { checkName, checkOptionNames, checkRunId, RepriseError } from "../base/index.ts";
import { RUN_STATUSES, type RunNumber, type RunRecord, type RunStatus, type Store } from "../kernel/index.ts";
import type { RunFilter } from "./api.ts";

const PAGE = 100;

export async function* listPages(store: Store, filter: RunFilter): AsyncIterable<readonly RunRecord[]> {
  const { statuses, limit } = checkFilter(filter);
  let before = filter.after === undefined ? undefined : await getRunNumber(store, filter.after);
  for (let left = limit; left > 0;) {
    const page = await store.listRuns({
      ...(filter.definition !== undefined && { definition: filter.definition }),
      ...(statuses && { statuses }),
      ...(filter.tag !== undefined && { tag: filter.tag }),
      ...(before !== undefined && { before }),
      limit: Math.min(PAGE, left),
    });
    yield page;
    left -= page.length;
    before = page.at(-1)?.run;
    if (page.length < PAGE) return;
  }
}

async function getRunNumber(store: Store, id: string): Promise<RunNumber> {
  const record = await store.findRun(checkRunId(id));
  if (record !== undefined) return record.run;
  throw new RepriseError("RUN_NOT_FOUND", `list: there is no run ${id}; pass the id of an existing run as after.`);
}

function checkFilter(filter: RunFilter): { statuses: readonly RunStatus[] | undefined; limit: number } {
  checkOptionNames(filter, ["definition", "status", "tag", "after", "limit"], "list");
  const { status, limit = Number.POSITIVE_INFINITY } = filter;
  const statuses = status === undefined || typeof status !== "string" ? status : [status];
  if (statuses !== undefined && !Array.isArray(statuses))
    throw new RepriseError("BAD_OPTIONS", `list: expected a status or an array of them, got ${inspect(status)}.`);
  if (filter.tag !== undefined) checkName(filter.tag, "list: tag");
  if (filter.definition !== undefined) checkName(filter.definition, "list: definition");
  for (const one of statuses ?? [])
    if (!RUN_STATUSES.includes(one))
      throw new RepriseError(
        "BAD_OPTIONS",
        `list: there is no status ${String(one)}; expected one of: ${RUN_STATUSES.join(", ")}.`,
      );
  if (limit !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(limit) && limit >= 0))
    throw new RepriseError("BAD_OPTIONS", `list: expected a whole number of 0 or more as limit, got ${String(limit)}.`);
  return { statuses, limit };
}
