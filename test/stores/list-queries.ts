// The first query of a list of runs, for tests of plans.

import type { RunFilter } from "../../src/kernel/index.ts";
import type { Query } from "../../src/stores/remote/query.ts";
import { ReadRows } from "../../src/stores/remote/read-rows.ts";
import { listRuns } from "../../src/stores/rules/list-runs.ts";

export function listQuery(filter: Omit<RunFilter, "limit">): Query {
  const rows = new ReadRows();
  listRuns(rows, { limit: 50, ...filter });
  return rows.takeMissing()[0]!;
}
