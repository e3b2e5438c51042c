// Fork: a run that starts from a committed step of another run, or from one of its commands. That run is its origin.
//
// fork.F1. A fork shares the earlier steps or entries of its origin and does not copy them: its first entry names the origin.
// fork.F2. The second entry of a graph's fork is the step it starts from, as a step of its own: the complete state, with the
//   patch applied, and the frontier. Loading, replaying or verifying it starts there and reads nothing of the origin.
// fork.F3. It uses the random seed of its origin; its keys, children and messages derive from its own id (rules.G14). Code of
//   a workflow draws from the fork's own seed after the first answer that the fork does not share.
// fork.F4. A run is kept as long as a fork of it exists.
// fork.F5. The journal of a workflow's fork continues that of its origin after the entry `seq`, which has the chain value
//   `chain`: its code replays the shared entries first. A command without an answer in them is requested again by the fork.
// fork.F6. Its first entry also holds the answers that the caller gave, and whether its effects are those that the origin
//   recorded: a worker that takes the fork over gives the same answers.
// fork.F7. A flow's fork has copies of the entries of the nodes that it keeps, and the counters that follow from them: the arrivals
//   of a run name entries of the same run. It shares nothing; recorded effects are read from the origin.
// fork.F8. Its first entry also holds the names of the models that it replaces. Its children, its later generations and its forks
//   inherit them. Code sees them in `ctx.models` after the entries that the fork shares: before, it sees those of the origin.
// fork.F9. The forks of an evaluation have a tag that begins with `eval:`. Webhooks do not report them: no person is called for them.

import { encode, invariant } from "../base/index.ts";
import type { NewRun } from "./commit.ts";
import type { NewCheckpoint, DeliveredMessage } from "./checkpoint.ts";
import type { NewEntry, NodeArrival, NodeItem, Readiness } from "./completion.ts";
import type { RunStartedData } from "./entry-data.ts";
import type { Entry } from "./journal.ts";
import type { RunNumber, RunRecord } from "./run.ts";

/** fork.F1. In the first entry of a fork: the checkpoint it starts from, and the messages its origin had received by then. */
export interface ForkOrigin extends ForkChanges {
  readonly run: string;
  readonly step: number;
  readonly seq: number;
  readonly chain: string;
  readonly delivered?: readonly DeliveredMessage[];
}

/** How the effects of a fork come about: `live` executes them, `recorded` takes those of the origin and calls nothing. */
export type ForkEffects = "live" | "recorded";

/** fork.F8. The name of a model in the code, and the name of the model that is called instead. */
export type ModelNames = Readonly<Record<string, string>>;

/** fork.F9 */
export const EVALUATION_TAG = "eval:";

/** fork.F6. How a fork is answered; absent: by executing its commands. */
export interface ForkChanges {
  /** By command. */
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly effects?: "recorded";
  /** With recorded effects: the last entry of the origin that counts. */
  readonly head?: number;
}

/** fork.F5. In the first entry of a fork at a command. */
export interface CommandForkOrigin extends ForkChanges {
  readonly run: string;
  readonly generation: number;
  /** The command that is answered again; in a flow, the node. */
  readonly at: string;
  /** The last shared entry, as the origin numbers it. Of an origin that is a fork itself, its own shared entries end with 0. */
  readonly seq: number;
  readonly chain: string;
}

/** How journals store an origin: `delivered` has kept its first name, because stored entries never change. */
export type StoredForkOrigin =
  | (Omit<ForkOrigin, "delivered"> & { readonly ["told"]?: readonly DeliveredMessage[] })
  | CommandForkOrigin;

/** The origin in the data of a graph's first entry; undefined: the run is not a fork of a step. */
export function forkOriginOf({ forked: stored }: RunStartedData): ForkOrigin | undefined {
  if (stored === undefined || "at" in stored) return undefined;
  const { ["told"]: delivered, ...origin } = stored;
  return { ...origin, ...(delivered && { delivered }) };
}

/** The origin in the data of a first entry; undefined: the run is not a fork at a command. */
export function commandForkOriginOf({ forked: stored }: RunStartedData): CommandForkOrigin | undefined {
  return stored !== undefined && "at" in stored ? stored : undefined;
}

/** fork.F6. Undefined: the run is not a fork, or all its commands are executed. */
export function forkChangesOf({ forked }: RunStartedData): StoredForkOrigin | undefined {
  return forked?.answers === undefined && forked?.effects === undefined ? undefined : forked;
}

/** The text that the first entry of a fork at a command stores as `forked`. */
export function commandForkText(origin: CommandForkOrigin): string {
  return encode(origin);
}

/** The text that the first entry of a graph's fork stores as `forked`. */
export function forkOriginText({ delivered, ...origin }: ForkOrigin): string {
  invariant(origin.step >= 0 && origin.seq >= 1, "fork.F1: the origin is a committed checkpoint");
  const stored: StoredForkOrigin = { ...origin, ...(delivered && { ["told"]: delivered }) };
  return encode(stored);
}

/** fork.F7. The rows of a flow's fork that follow from the entries it has of its origin. */
export interface CopiedFlow {
  /** From entry 2 on. */
  readonly entries: readonly NewEntry[];
  readonly arrivals: readonly CopiedArrival[];
  readonly counters: readonly CopiedCounter[];
  /** Nodes that have all their inputs and have not ended. */
  readonly items: readonly { readonly item: string; readonly node: NodeItem; readonly seq: number }[];
}
export interface CopiedArrival extends Pick<NodeArrival, "target" | "edge" | "index" | "kind"> {
  readonly seq: number;
}
export interface CopiedCounter extends Readiness {
  readonly window: number | undefined;
  readonly firstSeq: number | undefined;
  readonly perEntry: number | undefined;
}

/** Starts a run from a checkpoint or at a command, in one commit. */
export interface ForkWrite {
  readonly write: "fork";
  readonly run: NewRun;
  /** Checked again under the lock: it may have been pruned since it was read. */
  readonly origin: { readonly run: RunNumber } & (
    | { readonly step: number; readonly key: string }
    /** fork.F5. The last shared entry and its mark; undefined: the origin shares it, too. */
    | { readonly seq: number; readonly mark: number | undefined }
  );
  /** fork.F2. The second entry of a graph's fork; undefined: the fork begins at a command. */
  readonly step?: {
    readonly data: string;
    readonly checkpoint: Pick<NewCheckpoint, "step" | "key" | "label" | "state">;
  };
  /** fork.F7 */
  readonly flow?: CopiedFlow;
  /** Promises that already have a value and accept no second one. */
  readonly settled: readonly { readonly target: string; readonly data: string }[];
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
  /** The step or the entry to fork from does not exist. */
  | { readonly status: "no_checkpoint" };
