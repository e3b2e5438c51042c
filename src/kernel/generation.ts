// Generation: `ctx.continueAsNew` ends a run and starts a new one under the same id (rules.W9).
//
// generation.N1. The end of one generation and the start of the next are one commit: an id always has its live generation.
// generation.N2. A wait, a query or a message by id goes to the newest generation. Answers to commands of the old one are
//   dropped with it.
// generation.N3. Messages that the old generation received and did not read move to the next, in order, before later ones.

import { inspect } from "node:util";
import { RepriseError } from "../base/index.ts";
import type { Arrival, Claim } from "./commit.ts";
import type { EntryType } from "./journal.ts";

/** A version of a definition. */
export interface DefinitionVersion {
  readonly name: string;
  readonly version: number;
}

/** The fields that are new in the next generation; it inherits the others. */
export interface NextGeneration {
  readonly version: number;
  /** The data of its first entry, input included. */
  readonly started: string;
  readonly runtime: string;
  /** generation.N3. Messages in the old journal that its code never read; those in the inbox follow them. */
  readonly carried: readonly Arrival[];
  /** Leases its first turn to the worker that ended the previous generation. */
  readonly claim?: Claim;
}

/** The live runs of a version of a definition, and how many of them have an unclaimed due turn. */
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
  "SettleAnswered",
]);

/** generation.N2. Whether a message answers a command of one generation; other messages belong to the run. */
export function isAnswer(type: EntryType): boolean {
  return ANSWERS.has(type);
}

export function checkVersion(version: unknown, what: string): number | undefined {
  if (version === undefined || (Number.isSafeInteger(version) && (version as number) >= 1))
    return version as number | undefined;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a version of 1 or more, got ${inspect(version)}.`);
}
