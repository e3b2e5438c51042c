// Replay of a run: the current code against the journal. It writes nothing, and reads only the journal and checkpoints.

import { inspect } from "node:util";
import { checkOptionNames, RepriseError, type Timers } from "../base/index.ts";
import { findJournalFault, type RunRecord, type Store } from "../kernel/index.ts";
import {
  readShared,
  replayJournal,
  type ExecutionHost,
  type Replay,
  type ReplaySource,
  type WorkflowBody,
} from "../workflow/index.ts";
import type { ReplayOptions } from "./api.ts";
import { getCheckpoint, readLineage, type CheckpointAt } from "../explain/index.ts";
import { graphMessages, resumeLive, type Scratch } from "./resume-replay.ts";
import { checkAt } from "./run-checkpoints.ts";

export interface ReplayHost {
  readonly store: Store;
  readonly timers: Timers;
  /** What the code needs from its process; its log lines are dropped. */
  readonly execution: ExecutionHost;
  openScratch(): Promise<Scratch>;
}

const OPTIONS = ["from", "generation", "live", "mode", "signal", "strict"] as const;

export function checkReplayOptions(options: ReplayOptions, what: string): void {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `${what}: expected an object of options, got ${inspect(options)}.`);
  checkOptionNames(options, OPTIONS, what);
  const { strict, live, mode = "full", from } = options;
  if (mode !== "full" && mode !== "resume")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a mode of "full" or "resume", got ${inspect(mode)}.`);
  if (from !== undefined) checkAt(from, `${what}: from`);
  if (from !== undefined && mode !== "resume")
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: from says where the mode "resume" starts to execute. Add mode: "resume", or remove from.`,
    );
  if (live !== undefined && mode === "resume")
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: the mode "resume" executes everything after the checkpoint. Remove live.`,
    );
  if (strict !== undefined && typeof strict !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected strict to be true or false, got ${inspect(strict)}.`);
  if (live !== undefined && !(Array.isArray(live) && live.every((name) => typeof name === "string")))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected live to be a list of node names, got ${inspect(live)}.`);
}

/** `verified`: checks the journal against its hash chain first; a graph's journal is always checked. */
export async function replayRun(
  host: ReplayHost,
  record: RunRecord,
  body: WorkflowBody,
  options: ReplayOptions,
  verified: boolean,
): Promise<Replay> {
  const { store } = host;
  const { strict = true, live = [], mode } = options;
  if ((live.length > 0 || mode === "resume") && body.replay === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `replay: ${body.name} is not a graph, so it has no nodes or checkpoints. Remove live and mode.`,
    );
  if (mode === "resume") return resumeRun(host, record, body, options);
  // A live run may have moved on since its row was read.
  const own = await store.readJournal(record.run, 0, record.head);
  // fork.F5
  const shared = record.kind === "workflow" ? await readShared(store, own[0]) : undefined;
  const entries = shared === undefined ? own : [...shared.entries, ...own];
  const fault = verified || body.replay !== undefined ? (findJournalFault(own, record) ?? shared?.fault) : undefined;
  if (fault?.code !== undefined)
    throw new RepriseError(fault.code, `${fault.problem}.`, { details: { run: record.id, seq: fault.seq } });
  const { chain } = record;
  // The replay of a graph reports damage itself.
  if (fault !== undefined && verified && body.kind !== "graph")
    return {
      status: "mismatch",
      where: `entry ${fault.seq}`,
      message: `The journal is damaged: ${fault.problem}.`,
      expected: `sha256:${chain}`,
      actual: fault.problem,
    };
  return replayEntries(host, record, body, { entries, chain, strict, live });
}

function replayEntries(
  { timers, execution }: ReplayHost,
  { id, generation }: RunRecord,
  body: WorkflowBody,
  past: Pick<ReplaySource, "entries" | "chain" | "strict" | "live">,
): Promise<Replay> {
  return replayJournal(body, { ...past, identity: { id, generation }, host: execution, timers });
}

/** resume-replay.R1 to resume-replay.R3 */
async function resumeRun(
  host: ReplayHost,
  record: RunRecord,
  body: WorkflowBody,
  { from, strict = true, signal }: ReplayOptions,
): Promise<Replay> {
  const { store } = host;
  const { range, row } = await getCheckpoint(
    store,
    await readLineage(store, record),
    await placeOf(store, record, from),
  );
  const origin = range.run === record.run ? record : await store.findRun(range.id);
  if (origin === undefined)
    throw new RepriseError("RUN_NOT_FOUND", `Run ${range.id}, which committed step ${row.step}, no longer exists.`);
  const journal = await store.readJournal(origin.run, 0);
  const entries = journal.slice(0, row.seq);
  const replay = await replayEntries(host, origin, body, { entries, chain: row.chain, strict });
  if (replay.status === "mismatch") return replay;
  const past = { recorded: entries, arrivals: graphMessages(journal.slice(row.seq)) };
  const { end, live } = await resumeLive(await host.openScratch(), origin, past, signal);
  return { ...replay, calls: { recorded: replay.calls?.recorded ?? 0, live }, end };
}

/** Default: the newest checkpoint. */
async function placeOf(store: Store, { id, run }: RunRecord, from: ReplayOptions["from"]): Promise<CheckpointAt> {
  if (from !== undefined) return from;
  const newest = await store.findCheckpoint(run, Number.MAX_SAFE_INTEGER, false);
  if (newest !== undefined) return newest.step;
  throw new RepriseError("CHECKPOINT_NOT_FOUND", `Run ${id} has no checkpoint yet to resume from.`, {
    details: { run: id },
  });
}
