// Run summary: a row of the list of runs.

import { RepriseError } from "../../base/index.ts";
import type { RunSummary } from "../../contract/index.ts";
import type { RunRecord } from "../../kernel/index.ts";
import { maySeeRun } from "../auth/scope.ts";
import type { Call } from "../host.ts";
import { isoOf } from "./view.ts";

export function summaryOf(record: RunRecord): RunSummary {
  const { id, definition, kind, version, generation, status, createdAt, endedAt, tags, head, chain, errorCode } =
    record;
  return {
    id,
    definition,
    kind,
    version,
    generation,
    status,
    createdAt: isoOf(createdAt),
    ...(endedAt !== undefined && { endedAt: isoOf(endedAt) }),
    tags,
    entries: head,
    digest: `sha256:${chain}`,
    ...(errorCode !== undefined && { errorCode }),
  };
}

/** The run of the path, or another one; 404 if it is outside of the caller's scope (scope.S1). */
export async function getRecord(
  { host, caller, params }: Pick<Call, "host" | "caller" | "params">,
  id: string = params["id"] ?? "",
  generation?: number,
): Promise<RunRecord> {
  const record = await host.store.findRun(id, generation);
  if (record !== undefined && maySeeRun(caller, record)) return record;
  const what = generation === undefined ? `run ${id}` : `generation ${generation} of run ${id}`;
  throw new RepriseError("RUN_NOT_FOUND", `There is no ${what}. Check the id and the store: \`reprise list\`.`, {
    details: { run: id },
  });
}

/** The run after a change, as every operation that changes one answers it. */
export async function changedRun(call: Pick<Call, "host" | "caller" | "params">): Promise<RunSummary> {
  return summaryOf(await getRecord(call));
}
