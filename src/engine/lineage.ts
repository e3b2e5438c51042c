// Lineage: whose steps a run has. Its own, and before them those of the run it was forked from (FK1).

import { decode, RepriseError, seedOf } from "../base/index.ts";
import { forkedOf, type NewCheckpoint, type RunNumber, type RunRecord, type Store } from "../kernel/index.ts";

/** Steps `from` to `upTo` of a run, both included. */
export interface Stretch {
  readonly run: RunNumber;
  readonly id: string;
  readonly from: number;
  readonly upTo: number;
}

export interface Lineage {
  readonly record: RunRecord;
  /** Oldest first; the last one is the run's own. */
  readonly stretches: readonly Stretch[];
  /** FK3 */
  readonly rngSeed: bigint;
  /** The data of the run's first entry. */
  readonly started: Readonly<Record<string, unknown>>;
}

const ALL = Number.MAX_SAFE_INTEGER;

export async function readLineage(store: Store, record: RunRecord): Promise<Lineage> {
  if (record.kind !== "graph")
    throw new RepriseError("USAGE", `Run ${record.id} follows a ${record.kind}; only runs of graphs have checkpoints.`);
  const started = await readStarted(store, record);
  const stretches: Stretch[] = [];
  let { run, id } = record;
  let upTo = ALL;
  for (let data = started; ;) {
    const forked = forkedOf(data);
    stretches.unshift({ run, id, from: forked?.step ?? 0, upTo });
    if (forked === undefined) break;
    const origin = await store.findRun(forked.run);
    if (origin === undefined)
      throw new RepriseError(
        "STORE_CORRUPT",
        `Run ${id} is a fork of run ${forked.run}, which is not there any more; run reprise doctor.`,
        { details: { run: id, origin: forked.run } },
      );
    ({ run, id } = origin);
    upTo = forked.step - 1;
    data = await readStarted(store, origin);
  }
  const rngSeed = typeof started["seed"] === "bigint" ? started["seed"] : seedOf(record.id, record.generation);
  return { record, stretches, rngSeed, started };
}

async function readStarted(store: Store, { run, id }: RunRecord): Promise<Readonly<Record<string, unknown>>> {
  const [first] = await store.readJournal(run, 0, 1);
  if (first === undefined)
    throw new RepriseError("USAGE", `Run ${id} is only expected so far; it has no checkpoints before it is started.`);
  return decode(first.data) as Record<string, unknown>;
}

/** A step by its number, or the newest one that `ctx.label` gave a name. */
export type CheckpointAt = number | { readonly label: string };

export interface Found {
  readonly stretch: Stretch;
  readonly row: NewCheckpoint;
}

export async function getCheckpoint(store: Store, lineage: Lineage, at: CheckpointAt): Promise<Found> {
  for (const stretch of lineage.stretches.toReversed()) {
    if (typeof at === "number" && at < stretch.from) continue;
    const row =
      typeof at === "number"
        ? await store.findCheckpoint(stretch.run, at, false)
        : await store.findLabelled(stretch.run, at.label, stretch.upTo);
    if (row !== undefined && (typeof at !== "number" || row.step === at)) return { stretch, row };
    if (typeof at === "number") break;
  }
  throw await notFound(store, lineage, at);
}

async function notFound(store: Store, { record, stretches }: Lineage, at: CheckpointAt): Promise<RepriseError> {
  const { id, status } = record;
  const newest = await store.findCheckpoint(stretches.at(-1)!.run, ALL, false);
  const there = newest === undefined ? "it has none yet" : `its newest is step ${newest.step}, and it is ${status}`;
  return new RepriseError(
    "CHECKPOINT_NOT_FOUND",
    typeof at === "number"
      ? `Run ${id} has no committed checkpoint of step ${at}; ${there}.`
      : `Run ${id} has no checkpoint labelled ${at.label}; ${there}.`,
    { details: { run: id, at } },
  );
}
