// The runs that a filter selects, page by page, newest first.

import { checkRunId, RepriseError } from "../base/index.ts";
import type { RunNumber, RunRecord, Store } from "../kernel/index.ts";
import type { RunFilter } from "./api.ts";
import { checkRunFilter } from "./run-filter.ts";

const PAGE = 100;

export async function* listPages(store: Store, given: RunFilter): AsyncIterable<readonly RunRecord[]> {
  const { filter, limit } = checkRunFilter(given, store.now());
  let before = given.after === undefined ? undefined : await getRunNumber(store, given.after, "after");
  if (filter.parent !== undefined) await getRunNumber(store, filter.parent, "parent");
  for (let left = limit; left > 0;) {
    const page = await store.listRuns({
      ...filter,
      ...(before !== undefined && { before }),
      limit: Math.min(PAGE, left),
    });
    yield page;
    left -= page.length;
    before = page.at(-1)?.run;
    if (page.length < PAGE) return;
  }
}

async function getRunNumber(store: Store, id: string, option: "after" | "parent"): Promise<RunNumber> {
  const record = await store.findRun(checkRunId(id));
  if (record !== undefined) return record.run;
  throw new RepriseError("RUN_NOT_FOUND", `list: there is no run ${id}; pass the id of an existing run as ${option}.`);
}
