// Run selection: the runs that a request names and its caller may see.
//
// run-selection.S1. A store lists runs of one definition and of all of some tags. A caller whose scope has several of them gets the
//   lists of each, merged by number: what the caller may not see is not read and does not shorten a page.

import { RepriseError } from "../../base/index.ts";
import type { BodyOf, QueryOf, runOperations } from "../../contract/index.ts";
import type { RunFilter, RunNumber, RunRecord, Store } from "../../kernel/index.ts";
import { maySeeRun } from "../auth/scope.ts";
import type { Caller } from "../host.ts";

type Given = Omit<BodyOf<typeof runOperations.bulkRuns>["filter"], "ids"> &
  Omit<QueryOf<typeof runOperations.listRuns>, "limit" | "after">;

export type Selection = Omit<RunFilter, "limit" | "before">;

export function selectionOf(given: Given): Selection {
  const { definition, status, kind, tag, from, to, endedFrom, endedTo, errorCode, parent, q } = given;
  return {
    ...(definition !== undefined && { definition }),
    ...(status !== undefined && { statuses: status }),
    ...(kind !== undefined && { kind }),
    ...(tag !== undefined && tag.length > 0 && { tags: tag }),
    ...(from !== undefined && { createdAfter: timeOf(from, "from") }),
    ...(to !== undefined && { createdBefore: timeOf(to, "to") }),
    ...(endedFrom !== undefined && { endedAfter: timeOf(endedFrom, "endedFrom") }),
    ...(endedTo !== undefined && { endedBefore: timeOf(endedTo, "endedTo") }),
    ...(errorCode !== undefined && { errorCode }),
    ...(parent !== undefined && { parent }),
    ...(q !== undefined && { idContains: q }),
  };
}

export function timeOf(text: string, name: string): number {
  const at = Date.parse(text);
  if (Number.isSafeInteger(at)) return at;
  throw new RepriseError("BAD_FORMAT", `${name}: expected a time in ISO 8601, got ${text.slice(0, 60)}.`, {
    details: { status: 400 },
  });
}

export interface RunPage {
  readonly records: readonly RunRecord[];
  /** Undefined: this is the last page. */
  readonly next: RunNumber | undefined;
}

/** run-selection.S1. A page of the runs, newest first. */
export async function listPage(
  store: Store,
  caller: Caller | undefined,
  selection: Selection,
  limit: number,
  before?: RunNumber,
): Promise<RunPage> {
  const found = new Map<RunNumber, RunRecord>();
  for (const part of visibleParts(caller, selection)) {
    const filter = { ...part, limit: limit + 1, ...(before !== undefined && { before }) };
    for (const record of await store.listRuns(filter)) if (maySeeRun(caller, record)) found.set(record.run, record);
  }
  const records = [...found.values()].toSorted((a, b) => b.run - a.run);
  const page = records.slice(0, limit);
  return { records: page, next: records.length > limit ? page.at(-1)?.run : undefined };
}

function visibleParts(caller: Caller | undefined, selection: Selection): readonly Selection[] {
  const { definition, tags = [], idContains } = selection;
  if (caller?.run !== undefined && idContains === undefined)
    return visibleParts(caller, { ...selection, idContains: caller.run });
  const definitions = caller?.definitions?.filter((name) => definition === undefined || name === definition);
  const ofDefinitions: readonly Selection[] = definitions?.map((name) => ({ ...selection, definition: name })) ?? [
    selection,
  ];
  const ofTags = caller?.tags?.some((tag) => tags.includes(tag)) === true ? undefined : caller?.tags;
  return ofTags === undefined
    ? ofDefinitions
    : ofDefinitions.flatMap((part) => ofTags.map((tag) => ({ ...part, tags: [...tags, tag] })));
}

/** The number in the cursor of a list of runs. */
export function cursorOf(after: string | undefined): RunNumber | undefined {
  if (after === undefined) return undefined;
  if (/^\d{1,16}$/.test(after)) return Number(after);
  throw new RepriseError("BAD_FORMAT", "after: expected `next` of the page before.", { details: { status: 400 } });
}

export const DEFAULT_LIMIT = 50;
