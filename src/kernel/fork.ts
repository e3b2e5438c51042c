// Fork: a run that begins from a committed step of another one.
//
// FK1. It has that run's steps before in common with it, and no copy of them: its first entry says whose they are.
// FK2. Its second entry is the step it begins from, as a step of its own: the whole state, with what was changed in it, and
//      the frontier. Whoever loads, replays or checks a fork begins there, and needs nothing of the other run.
// FK3. It draws chance from the seed of the run it comes from; keys, children and messages are those of its own id (G14).
// FK4. A run is kept for as long as a fork of it is.

import type { NewRun } from "./commit.ts";
import type { NewCheckpoint, Told } from "./checkpoint.ts";
import type { Entry } from "./journal.ts";
import type { RunNumber, RunRecord } from "./run.ts";

/** FK1. In the first entry of a fork: the checkpoint it begins from, and what its run had been told by then. */
export interface Forked {
  readonly run: string;
  readonly step: number;
  readonly seq: number;
  readonly chain: string;
  readonly told?: readonly Told[];
}

/** What the data of a first entry says. */
export function forkedOf(started: unknown): Forked | undefined {
  return (started as { readonly forked?: Forked } | null)?.forked;
}

/** Starts a run that begins from a checkpoint; everything in one commit, or nothing. */
export interface ForkWrite {
  readonly write: "fork";
  readonly run: NewRun;
  /** Looked at again under the lock: it may have been pruned since it was read. */
  readonly origin: { readonly run: RunNumber; readonly step: number; readonly key: string };
  /** FK2. The data of its second entry. */
  readonly data: string;
  readonly checkpoint: Pick<NewCheckpoint, "step" | "key" | "label" | "state">;
  /** Promises that have their value already: they take no second one. */
  readonly settled: readonly string[];
}
export type ForkOutcome =
  | { readonly status: "started"; readonly record: RunRecord }
  /** The id is taken; the caller compares what is there with what it wanted. */
  | {
      readonly status: "exists";
      readonly record: RunRecord;
      readonly first: Entry;
      /** Undefined where there is only one entry. */
      readonly second: Entry | undefined;
    }
  /** The id is that of a run which is expected to follow another definition. */
  | { readonly status: "expected-otherwise"; readonly record: RunRecord }
  | { readonly status: "no-checkpoint" };
