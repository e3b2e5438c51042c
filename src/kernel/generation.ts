// Generation: a run that has grown too long goes on under the same id as a new run (W9).
//
// N1. The end of one generation and the start of the next are one commit: an id is never without a run that goes on.
// N2. Who waits, asks or sends by id means the newest generation. What answers a command of the old one is dropped with it.
// N3. What the old one was told and did not use goes over, in the order it came, and comes before whatever arrives later.

import { inspect } from "node:util";
import { RepriseError } from "../base/index.ts";
import type { Arrival, Claim } from "./commit.ts";
import type { EntryType } from "./journal.ts";

/** A definition in one of its versions. */
export interface DefinitionVersion {
  readonly name: string;
  readonly version: number;
}

/** What a next generation has of its own; the rest it takes over from the run that ends. */
export interface NextGeneration {
  readonly version: number;
  /** The data of its first entry, input included. */
  readonly started: string;
  readonly runtime: string;
  /** N3. Messages that are in the old journal and that its code never used; those still in the inbox follow them. */
  readonly carried: readonly Arrival[];
  /** Set to lease its first turn to the one who ended the generation before. */
  readonly claim?: Claim;
}

/** How many live runs there are of one version of a definition, and how many of them have a turn that nobody has taken. */
export interface VersionCount extends DefinitionVersion {
  readonly live: number;
  readonly due: number;
}

const ANSWERS: ReadonlySet<EntryType> = new Set<EntryType>([
  "TaskCompleted",
  "TaskFailed",
  "ChildWorkflowCompleted",
  "ChildWorkflowFailed",
  "TimerFired",
  "PromiseTimedOut",
]);

/** N2. Whether a message answers a command of one generation, instead of being meant for the run as such. */
export function isAnswer(type: EntryType): boolean {
  return ANSWERS.has(type);
}

export function checkVersion(version: unknown, what: string): number | undefined {
  if (version === undefined || (Number.isSafeInteger(version) && (version as number) >= 1))
    return version as number | undefined;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a version of 1 or more, got ${inspect(version)}.`);
}
