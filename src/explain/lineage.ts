// Lineage: the runs that a run's steps come from. Its own, and before those the steps of the run it was forked from
// (fork.F1).

import { RepriseError, seedOf } from "../base/index.ts";
import {
  decodeData,
  forkOriginOf,
  type NewCheckpoint,
  type RunNumber,
  type RunRecord,
  type RunStartedData,
  type Store,
} from "../kernel/index.ts";

/** Steps `from` to `upTo` of a run, both included. */
export interface LineageRange {
  readonly run: RunNumber;
  readonly id: string;
  readonly from: number;
  readonly upTo: number;
}

export interface Lineage {
  readonly record: RunRecord;
  /** Oldest first; the last one is the run's own. */
  readonly ranges: readonly LineageRange[];
  /** fork.F3 */
  readonly rngSeed: bigint;
  /** The data of the run's first entry. */
  readonly started: RunStartedData;
}

const ALL = Number.MAX_SAFE_INTEGER;

export async function readLineage(store: Store, record: RunRecord): Promise<Lineage> {
  if (record.kind !== "graph")
    throw new RepriseError(
      "USAGE",
      `Run ${record.id} is a run of a ${record.kind}; only runs of graphs have checkpoints.`,
    );
  const started = await readStarted(store, record);
  const ranges: LineageRange[] = [];
  let { run, id } = record;
  let upTo = ALL;
  for (let data = started; ;) {
    const forked = forkOriginOf(data);
    ranges.unshift({ run, id, from: forked?.step ?? 0, upTo });
    if (forked === undefined) break;
    const origin = await store.findRun(forked.run);
    if (origin === undefined)
      throw new RepriseError(
        "STORE_CORRUPT",
        `Run ${id} is a fork of run ${forked.run}, which no longer exists. Run \`reprise doctor\`.`,
        { details: { run: id, origin: forked.run } },
      );
    // An imported run may name itself.
    if (ranges.some((range) => range.run === origin.run))
      throw new RepriseError("STORE_CORRUPT", `Run ${origin.id} is a fork of itself. Run \`reprise doctor\`.`, {
        details: { run: origin.id },
      });
    ({ run, id } = origin);
    upTo = forked.step - 1;
    data = await readStarted(store, origin);
  }
  const rngSeed = started.seed ?? seedOf(record.id, record.generation);
  return { record, ranges, rngSeed, started };
}

async function readStarted(store: Store, { run, id }: RunRecord): Promise<RunStartedData> {
  const [first] = await store.readJournal(run, 0, 1);
  if (first === undefined)
    throw new RepriseError("USAGE", `Run ${id} has not been started yet, so it has no checkpoints.`);
  return decodeData("RunStarted", first.data);
}

/** A checkpoint: the number of its step, or `{ label }` for the newest step that `ctx.label` marked. */
export type CheckpointAt = number | { readonly label: string };

export interface FoundCheckpoint {
  readonly range: LineageRange;
  readonly row: NewCheckpoint;
}

export async function getCheckpoint(store: Store, lineage: Lineage, at: CheckpointAt): Promise<FoundCheckpoint> {
  for (const range of lineage.ranges.toReversed()) {
    if (typeof at === "number" && at < range.from) continue;
    const row =
      typeof at === "number"
        ? await store.findCheckpoint(range.run, at, false)
        : await store.findLabeledCheckpoint(range.run, at.label, range.upTo);
    if (row !== undefined && (typeof at !== "number" || row.step === at)) return { range, row };
    if (typeof at === "number") break;
  }
  throw await notFound(store, lineage, at);
}

async function notFound(store: Store, { record, ranges }: Lineage, at: CheckpointAt): Promise<RepriseError> {
  const { id, status } = record;
  const newest = await store.findCheckpoint(ranges.at(-1)!.run, ALL, false);
  const there = newest === undefined ? "it has none yet" : `its newest is step ${newest.step}, and it is ${status}`;
  return new RepriseError(
    "CHECKPOINT_NOT_FOUND",
    typeof at === "number"
      ? `Run ${id} has no committed checkpoint of step ${at}; ${there}.`
      : `Run ${id} has no checkpoint labelled ${at.label}; ${there}.`,
    { details: { run: id, at } },
  );
}
