// Run filter: checks what `list` and `bulk` select runs by, and makes it the filter of a store.

import { inspect } from "node:util";
import { checkName, checkOptionNames, checkRunId, RepriseError, toMs, type EpochMs } from "../base/index.ts";
import { RUN_STATUSES, type RunFilter as StoreFilter, type RunStatus } from "../kernel/index.ts";
import type { RunFilter, TimeOrAge } from "./api.ts";

const KINDS = ["workflow", "graph", "flow"] as const;
const TIMES = ["createdAfter", "createdBefore", "endedAfter", "endedBefore"] as const;

const OPTIONS = [
  "after",
  "createdAfter",
  "createdBefore",
  "definition",
  "endedAfter",
  "endedBefore",
  "errorCode",
  "idContains",
  "kind",
  "limit",
  "parent",
  "status",
  "tag",
];

export interface CheckedFilter {
  /** Undefined: all. */
  readonly limit: number;
  readonly filter: Omit<StoreFilter, "limit" | "before">;
}

/** `now`: ages count back from it. */
export function checkRunFilter(given: RunFilter, now: EpochMs): CheckedFilter {
  checkOptionNames(given, OPTIONS, "list");
  const { limit = Number.POSITIVE_INFINITY, definition, kind, parent } = given;
  if (definition !== undefined) checkName(definition, "list: definition");
  if (kind !== undefined && !KINDS.includes(kind))
    throw bad(`there is no kind ${inspect(kind)}; expected one of: ${KINDS.join(", ")}`);
  if (limit !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(limit) && limit >= 0))
    throw bad(`expected a whole number of 0 or more as limit, got ${String(limit)}`);
  if (parent !== undefined) checkRunId(parent);
  const statuses = checkStatuses(given.status);
  const tags = checkTags(given.tag);
  const times: { [K in (typeof TIMES)[number]]?: EpochMs } = {};
  for (const name of TIMES) if (given[name] !== undefined) times[name] = timeOf(given[name], now, `list: ${name}`);
  return {
    limit,
    filter: {
      ...(definition !== undefined && { definition }),
      ...(kind !== undefined && { kind }),
      ...(statuses && { statuses }),
      ...(tags && { tags }),
      ...times,
      ...textOf("errorCode", given.errorCode),
      ...textOf("idContains", given.idContains),
      ...(parent !== undefined && { parent }),
    },
  };
}

function checkStatuses(status: unknown): readonly RunStatus[] | undefined {
  const statuses = typeof status === "string" ? [status] : status;
  if (statuses === undefined) return undefined;
  if (!Array.isArray(statuses)) throw bad(`expected a status or an array of them, got ${inspect(status)}`);
  for (const one of statuses)
    if (!RUN_STATUSES.includes(one as RunStatus))
      throw bad(`there is no status ${String(one)}; expected one of: ${RUN_STATUSES.join(", ")}`);
  return statuses as readonly RunStatus[];
}

function checkTags(tag: unknown): readonly string[] | undefined {
  const tags = typeof tag === "string" ? [tag] : tag;
  if (tags === undefined) return undefined;
  // An empty list would select every run.
  if (!Array.isArray(tags) || tags.length === 0)
    throw bad(`expected a tag or an array of at least one, got ${inspect(tag)}`);
  for (const one of tags) checkName(one, "list: tag");
  return tags as readonly string[];
}

function textOf<K extends "errorCode" | "idContains">(name: K, text: unknown): { [P in K]?: string } {
  if (text === undefined) return {};
  if (typeof text === "string" && text !== "" && text.isWellFormed()) return { [name]: text } as { [P in K]?: string };
  throw bad(`expected a text that is not empty as ${name}, got ${inspect(text)}`);
}

/** A date, or an age: that long before `now`. */
export function timeOf(time: TimeOrAge, now: EpochMs, what: string): EpochMs {
  if (!(time instanceof Date)) return Math.max(0, now - toMs(time, what));
  const at = time.getTime();
  if (Number.isSafeInteger(at)) return at;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a valid date, got an invalid one.`);
}

function bad(problem: string): RepriseError {
  return new RepriseError("BAD_OPTIONS", `list: ${problem}.`);
}
