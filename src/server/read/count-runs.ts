// Count runs: by status, for the caller, with bounded cost, and not more often than every two seconds.

import type { RunCounts } from "../../contract/index.ts";
import { RUN_STATUSES, type RunStatus, type StatusCounts, type Store } from "../../kernel/index.ts";
import { isScoped } from "../auth/scope.ts";
import type { Caller } from "../host.ts";
import { cached } from "./cached.ts";
import { listPage } from "./run-selection.ts";

const UP_TO = 10_000;
/** Runs with a tag, or of a caller with scopes, are read and counted. */
const MAX_READ = 1_000;

export function countRuns(
  store: Store,
  caller: Caller | undefined,
  definition: string | undefined,
  tags: readonly string[] | undefined,
): Promise<RunCounts> {
  const { definitions, tags: ownTags, run } = caller ?? {};
  const key = JSON.stringify([definition, tags, isScoped(caller) && [definitions, ownTags, run]]);
  return cached(store, `counts ${key}`, async () => {
    if (tags === undefined && ownTags === undefined && run === undefined) {
      const names =
        definition === undefined ? definitions : [definition].filter((name) => definitions?.includes(name) ?? true);
      const parts = await Promise.all((names ?? [undefined]).map((name) => store.countStatuses(UP_TO, name)));
      return { ...sum(parts), upTo: UP_TO };
    }
    const selection = { ...(definition !== undefined && { definition }), ...(tags && { tags }) };
    const { records, next } = await listPage(store, caller, selection, MAX_READ);
    const counts = emptyCounts();
    for (const { status } of records) counts[status] += 1;
    return { counts, atLeast: next === undefined ? [] : RUN_STATUSES, upTo: MAX_READ };
  });
}

function emptyCounts(): Record<RunStatus, number> {
  return Object.fromEntries(RUN_STATUSES.map((status) => [status, 0])) as Record<RunStatus, number>;
}

function sum(parts: readonly StatusCounts[]): StatusCounts {
  const counts = emptyCounts();
  for (const part of parts) for (const status of RUN_STATUSES) counts[status] += part.counts[status];
  return { counts, atLeast: RUN_STATUSES.filter((status) => parts.some((part) => part.atLeast.includes(status))) };
}
