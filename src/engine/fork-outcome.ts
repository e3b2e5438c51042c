// Fork outcome: the run that a fork made, or that exists already.
//
// fork-outcome.O1. The same id with the same content is the same fork; with other content it is refused.

import { inspect } from "node:util";
import { encode, RepriseError } from "../base/index.ts";
import {
  decodeData,
  type Entry,
  type ForkOutcome,
  type ModelNames,
  type RunRecord,
  type StoredForkOrigin,
} from "../kernel/index.ts";
import type { RunHandleHost } from "./run-handle.ts";

/** The place of a fork that shares nothing but the input of its origin. */
export const INPUT = "input";

/** What was asked for. */
export interface AskedFork {
  /** `step 3 of run a` */
  readonly text: string;
  /** What may differ between two forks from there: `patch`. */
  readonly options: string;
  readonly models: ModelNames | undefined;
  readonly isSame: (forked: StoredForkOrigin, second: Entry | undefined) => boolean;
}

/** fork-outcome.O1 */
export function getMade(outcome: ForkOutcome, id: string, origin: RunRecord, asked: AskedFork): RunRecord {
  if (outcome.status === "started") return outcome.record;
  const { text } = asked;
  if (outcome.status === "no_checkpoint")
    throw new RepriseError(
      "CHECKPOINT_NOT_FOUND",
      `${text} was pruned before the fork was written. Fork a newer run.`,
      {
        details: { run: origin.id, at: text },
      },
    );
  if (outcome.status === "exists" && isSame(outcome.first, outcome.second, asked)) return outcome.record;
  const is =
    outcome.status === "exists" ? describe(outcome.first) : `expected to be a run of ${outcome.record.definition}`;
  const wanted = is === `a fork from ${text}` ? `this one with another ${asked.options}` : `a fork from ${text}`;
  throw new RepriseError("START_CONFLICT", `Run ${id} is ${is}; it cannot become ${wanted}. Use another id.`, {
    details: { run: id, expected: is, actual: `a fork from ${text}` },
  });
}

function isSame(first: Entry, second: Entry | undefined, asked: AskedFork): boolean {
  const { forked, models = {} } = decodeData("RunStarted", first.data);
  return forked !== undefined && encode(models) === encode(asked.models ?? {}) && asked.isSame(forked, second);
}

function describe(first: Entry): string {
  const { forked } = decodeData("RunStarted", first.data);
  if (forked === undefined) return "an existing run that is not a fork";
  return `a fork from ${"at" in forked ? forked.at : `step ${forked.step}`} of run ${forked.run}`;
}

export function checkForkVersion(
  { registry }: RunHandleHost,
  { definition, version }: RunRecord,
  wanted: unknown,
): number {
  if (wanted === undefined) return version;
  if (!Number.isSafeInteger(wanted) || (wanted as number) < 1)
    throw new RepriseError("BAD_OPTIONS", `fork: expected a version of 1 or more, got ${inspect(wanted)}.`);
  return registry.getWorkflow(definition, wanted as number).version;
}

/** Checks how a fork is answered (fork.F6). */
export function checkForkChanges({
  answers,
  effects,
  models,
}: {
  readonly answers?: unknown;
  readonly effects?: unknown;
  readonly models?: unknown;
}): void {
  if (effects !== undefined && effects !== "live" && effects !== "recorded")
    throw new RepriseError("BAD_OPTIONS", `fork: expected "live" or "recorded" as effects, got ${inspect(effects)}.`);
  if (answers !== undefined && !isPlain(answers))
    throw new RepriseError(
      "BAD_OPTIONS",
      `fork: expected an object of values by command as answers, got ${inspect(answers, { depth: 0 })}.`,
    );
  if (models !== undefined) checkModels(models);
}

function checkModels(models: unknown): void {
  const isName = (name: unknown): boolean => typeof name === "string" && name !== "";
  if (isPlain(models) && Object.entries(models).every((names) => names.every(isName))) return;
  throw new RepriseError(
    "BAD_OPTIONS",
    `fork: expected names of models by name as models, such as { fast: "strong" }, got ${inspect(models, { depth: 1 })}.`,
  );
}

/** fork.F8. Those that the fork replaces itself, and those that its origin replaces. */
export function mergeModels(inherited: ModelNames | undefined, given: ModelNames | undefined): ModelNames | undefined {
  const models = { ...inherited, ...given };
  return Object.keys(models).length === 0 ? undefined : models;
}

export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
