// Migrate: a live run continues with another version of its definition.
//
// migrate-run.R1. The new version replays the journal in memory first, strictly. A run whose journal does not fit is refused with the
//   first difference, and nothing is written.
// migrate-run.R2. Only the journal that was replayed is migrated. A run that has moved on meanwhile is replayed again (migrate.M2).

import { inspect } from "node:util";
import { checkOptionNames, RepriseError } from "../base/index.ts";
import {
  findJournalFault,
  hasEnded,
  runMigratedText,
  type Entry,
  type MigrateWrite,
  type RunRecord,
} from "../kernel/index.ts";
import { findMisfit, routesOf } from "../flow/index.ts";
import { readShared, replayJournal, type ReplayDifference, type WorkflowBody } from "../workflow/index.ts";
import type { WaitOptions } from "./abort.ts";
import type { ControlledRun } from "./run-control.ts";
import type { RunHandleHost } from "./run-handle.ts";

/** Options of `run.migrate`. */
export interface MigrateOptions extends WaitOptions {
  /** The version to continue with. It must be among the definitions of this engine or client. */
  version: number;
  /** True: replays the run with the new version, throws if it does not fit, and changes nothing. */
  dryRun?: boolean;
}

/** How often the run is replayed because it moved on meanwhile. */
const MAX_TRIES = 5;

export function checkMigrateOptions(options: unknown): MigrateOptions {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `migrate: expected { version }, got ${inspect(options, { depth: 0 })}.`);
  checkOptionNames(options, ["dryRun", "signal", "version"], "migrate");
  const { version, dryRun } = options as Partial<MigrateOptions>;
  if (!Number.isSafeInteger(version) || (version as number) < 1)
    throw new RepriseError("BAD_OPTIONS", `migrate: expected a version of 1 or more, got ${inspect(version)}.`);
  if (dryRun !== undefined && typeof dryRun !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `migrate: expected dryRun to be true or false, got ${inspect(dryRun)}.`);
  return options as MigrateOptions;
}

export async function migrateRun({ host, id }: ControlledRun, options: MigrateOptions): Promise<void> {
  const { worker } = host;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    host.checkOpen();
    options.signal?.throwIfAborted();
    const record = await host.store.findRun(id);
    if (record === undefined)
      throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store.`);
    if (hasEnded(record.status))
      throw new RepriseError("RUN_ENDED", `Run ${id} has ended (${record.status}) and cannot be migrated.`);
    if (record.status === "expected")
      throw new RepriseError("USAGE", `Run ${id} has not been started: start it with the version it should have.`);
    if (record.version === options.version) return;
    // migrate-run.R1
    const found = await findDifference(host, record, options.version);
    if (found !== undefined) {
      if (await hasMoved(host, record)) continue;
      throw refused(record, options.version, found);
    }
    if (options.dryRun === true) return;
    const outcome = await worker.submit(writeFor(host, record, options.version));
    if (outcome.status === "committed") return worker.onMigrated(record.run);
    if (outcome.status === "no_route") throw refused(record, options.version, strayNode(outcome.item, outcome.route));
  }
  // migrate-run.R2
  throw new RepriseError(
    "USAGE",
    `Run ${id} moved on ${MAX_TRIES} times while it was replayed. Pause it, migrate it, and resume it.`,
  );
}

function writeFor({ registry }: RunHandleHost, record: RunRecord, version: number): MigrateWrite {
  const { run, head, chain, definition, kind } = record;
  return {
    write: "migrate",
    run,
    head,
    chain,
    version,
    data: runMigratedText({ from: record.version, to: version }),
    ...(kind === "flow" && { routes: routesOf(registry.getFlow(definition, version)) }),
  };
}

async function findDifference(
  host: RunHandleHost,
  record: RunRecord,
  version: number,
): Promise<ReplayDifference | undefined> {
  const body = host.registry.getWorkflow(record.definition, version);
  if (body.kind !== record.kind)
    return {
      where: "entry 1",
      message: `version ${version} of ${record.definition} is a ${body.kind}.`,
      expected: body.kind,
      actual: record.kind,
    };
  // Only the entries of the record: the run may have committed more since it was read.
  const own = await host.store.readJournal(record.run, 0, record.head);
  // fork.F5
  const shared = record.kind === "workflow" ? await readShared(host.store, own[0]) : undefined;
  const entries = [...(shared?.entries ?? []), ...own];
  const fault = findJournalFault(own, record) ?? shared?.fault;
  if (fault !== undefined)
    throw new RepriseError(fault.code ?? "STORE_CORRUPT", `The journal of run ${record.id}: ${fault.problem}.`, {
      details: { run: record.id, seq: fault.seq },
    });
  const verdict = await replayWith(host, record, body, entries);
  if (verdict !== undefined || record.kind !== "flow") return verdict;
  return findFlowMisfit(host, record, version, entries);
}

async function replayWith(
  client: RunHandleHost,
  { id, generation, chain }: RunRecord,
  body: WorkflowBody,
  entries: readonly Entry[],
): Promise<ReplayDifference | undefined> {
  const { timers } = client;
  const host = { ...client.executionHost, log: () => {} };
  const verdict = await replayJournal(body, { entries, chain, identity: { id, generation }, host, timers });
  return verdict.status === "mismatch" ? verdict : undefined;
}

async function findFlowMisfit(
  { store, registry }: RunHandleHost,
  { run, definition }: RunRecord,
  version: number,
  entries: readonly Entry[],
): Promise<ReplayDifference | undefined> {
  const body = registry.getFlow(definition, version);
  const readiness = await store.readReadiness(run);
  const targets = readiness
    .map(({ node }) => node)
    .filter((node) => body.regions.get(node)?.region.head.work.kind !== "barrier");
  const [arrivals = []] = targets.length === 0 ? [] : await store.readInputs([{ run, targets }]);
  return findMisfit(body, { entries, readiness, arrivals });
}

/** The rows of a flow are read after its journal: a run that moved on in between shows a difference that it does not have. */
async function hasMoved({ store }: RunHandleHost, { id, run, head, chain }: RunRecord): Promise<boolean> {
  const now = await store.findRun(id);
  return now === undefined || now.run !== run || now.head !== head || now.chain !== chain;
}

function strayNode(item: string, route: string): ReplayDifference {
  return {
    where: item,
    message: `node ${item} waits under a queue or a label that no node of that version has.`,
    expected: undefined,
    actual: route.split("\n").slice(2).join(" "),
  };
}

function refused({ id, definition, version: from }: RunRecord, to: number, found: ReplayDifference): RepriseError {
  const { where, message, expected, actual } = found;
  return new RepriseError(
    "MIGRATION_REFUSED",
    `Run ${id} cannot continue with version ${to} of ${definition}, at ${where}: ${message} It stays at version ${from}.`,
    { details: { run: id, from, to, where, expected, actual } },
  );
}
