// Replaying a run of the store: today's code against its journal.
//
// Nothing is written here, and nothing of the run's own store is read but the journal.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError, type Timers } from "../base/index.ts";
import { findJournalFault, type RunRecord, type Store } from "../kernel/index.ts";
import { replayJournal, type ExecutionHost, type Replay, type WorkflowBody } from "../workflow/index.ts";
import type { ReplayOptions } from "./api.ts";

export interface ReplayHost {
  readonly store: Store;
  readonly timers: Timers;
  /** What code needs of the worker; nothing is logged. */
  readonly execution: ExecutionHost;
}

const OPTIONS = ["generation", "live", "strict"] as const;

export function checkReplayOptions(options: ReplayOptions, what: string): void {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `${what}: expected an object of options, got ${inspect(options)}.`);
  checkOptionNames(options, OPTIONS, what);
  const { strict, live } = options;
  if (strict !== undefined && typeof strict !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected strict to be true or false, got ${inspect(strict)}.`);
  if (live !== undefined && !(Array.isArray(live) && live.every((name) => typeof name === "string")))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected live to be a list of node names, got ${inspect(live)}.`);
}

/** `verified`: the journal is checked against its hash chain first; that of a graph always is. */
export async function replayRun(
  { store, timers, execution }: ReplayHost,
  record: RunRecord,
  body: WorkflowBody,
  { strict = true, live = [] }: ReplayOptions,
  verified: boolean,
): Promise<Replay> {
  if (live.length > 0 && body.replay === undefined)
    throw new RepriseError("BAD_OPTIONS", `replay: ${body.name} is no graph, so it has no nodes to be live.`);
  const entries = await store.readJournal(record.run, 0);
  const { chain } = record;
  const fault = verified || body.replay !== undefined ? findJournalFault(entries, record) : undefined;
  if (fault?.code !== undefined)
    throw new RepriseError(fault.code, `${fault.problem}.`, { details: { run: record.id, seq: fault.seq } });
  if (fault !== undefined && body.replay === undefined)
    return {
      status: "mismatch",
      where: `entry ${fault.seq}`,
      message: `The journal is damaged: ${fault.problem}.`,
      expected: `sha256:${chain}`,
      actual: fault.problem,
    };
  const facts = { id: record.id, generation: record.generation };
  return replayJournal(body, { facts, entries, chain, host: execution, timers, strict, live });
}
