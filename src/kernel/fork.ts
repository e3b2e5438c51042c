// Fork: a run that starts from a committed step of another run, its origin.
//
// fork.F1. A fork shares the earlier steps of its origin and does not copy them: its first entry names the origin.
// fork.F2. Its second entry is the step it starts from, as a step of its own: the complete state, with the patch applied, and
//   the frontier. Loading, replaying or verifying a fork starts there and reads nothing of the origin.
// fork.F3. It uses the random seed of its origin; its keys, children and messages derive from its own id (rules.G14).
// fork.F4. A run is kept as long as a fork of it exists.

import { encode, invariant } from "../base/index.ts";
import type { NewRun } from "./commit.ts";
import type { NewCheckpoint, DeliveredMessage } from "./checkpoint.ts";
import type { RunStartedData } from "./entry-data.ts";
import type { Entry } from "./journal.ts";
import type { RunNumber, RunRecord } from "./run.ts";

/** fork.F1. In the first entry of a fork: the checkpoint it starts from, and the messages its origin had received by then. */
export interface ForkOrigin {
  readonly run: string;
  readonly step: number;
  readonly seq: number;
  readonly chain: string;
  readonly delivered?: readonly DeliveredMessage[];
}

/** How journals store `ForkOrigin`: `delivered` has kept its first name, because stored entries never change. */
export interface StoredForkOrigin extends Omit<ForkOrigin, "delivered"> {
  readonly ["told"]?: readonly DeliveredMessage[];
}

/** The origin in the data of a first entry; undefined: the run is not a fork. */
export function forkOriginOf({ forked: stored }: RunStartedData): ForkOrigin | undefined {
  if (stored === undefined) return undefined;
  const { run, step, seq, chain, ["told"]: delivered } = stored;
  return { run, step, seq, chain, ...(delivered && { delivered }) };
}

/** The text that the first entry stores as `forked`. */
export function forkOriginText({ delivered, ...origin }: ForkOrigin): string {
  invariant(origin.step >= 0 && origin.seq >= 1, "fork.F1: the origin is a committed checkpoint");
  const stored: StoredForkOrigin = { ...origin, ...(delivered && { ["told"]: delivered }) };
  return encode(stored);
}

/** Starts a run from a checkpoint, in one commit. */
export interface ForkWrite {
  readonly write: "fork";
  readonly run: NewRun;
  /** Checked again under the lock: it may have been pruned since it was read. */
  readonly origin: { readonly run: RunNumber; readonly step: number; readonly key: string };
  /** fork.F2. The data of its second entry. */
  readonly data: string;
  readonly checkpoint: Pick<NewCheckpoint, "step" | "key" | "label" | "state">;
  /** Promises that already have a value and accept no second one. */
  readonly settled: readonly string[];
}
export type ForkOutcome =
  | { readonly status: "started"; readonly record: RunRecord }
  /** The id is taken; the caller compares the existing run with the requested one. */
  | {
      readonly status: "exists";
      readonly record: RunRecord;
      readonly first: Entry;
      /** Undefined: the run has one entry. */
      readonly second: Entry | undefined;
    }
  /** Messages with `beforeStart` expect a run of another definition under this id. */
  | { readonly status: "other_definition"; readonly record: RunRecord }
  | { readonly status: "no_checkpoint" };
