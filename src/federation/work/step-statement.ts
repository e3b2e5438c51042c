// Step statement: what a peer says about a step that it executed for another site (in-toto Statement v1 in a DSSE envelope).
//
// step-statement.T1. Its step is the record that the run's claim has for this command (receipts/steps.ts). So two executions of one
//   step are compared by these texts, wherever they ran.
// step-statement.T2. The values are named by their keys.

import { artifactKey, canonicalJson, mediaType, sha256Hex, valueKey } from "../../base/index.ts";
import {
  checkSignature,
  envelopeText,
  parseEnvelope,
  stepText,
  type SigningKey,
  type StepRecord,
  type VerifyingKey,
} from "../../receipts/index.ts";

/** The type of a stored envelope. */
export const STEP_STATEMENT = mediaType("step");

const TYPE = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE = "urn:reprise:step:v1";

export interface ExecutedStep {
  /** Who executed it. */
  readonly origin: string;
  readonly run: string;
  readonly generation: number;
  readonly attempt: number;
  readonly execution: number;
  readonly step: StepRecord;
  /** The text of the process. */
  readonly runtime: string;
  /** By the clock of the peer. */
  readonly startedAt: number;
  readonly tookMs: number;
}

/** The end of a function: the texts of its result or its error. */
export interface StepEnd {
  readonly result?: string | undefined;
  readonly error?: string | undefined;
}

/** step-statement.T1. `input`: its text. */
export function taskStep(command: string, name: string, input: string | undefined, end: StepEnd): StepRecord {
  return {
    command,
    kind: "task",
    name,
    ...(input !== undefined && { in: valueKey(input) }),
    ...(end.error !== undefined && { error: valueKey(end.error) }),
    ...(end.error === undefined && end.result !== undefined && { out: valueKey(end.result) }),
  };
}

/** The text of the envelope; without a key it is not signed. */
export function stepStatement(executed: ExecutedStep, key: SigningKey | undefined): string {
  const subject = subjectOf(executed);
  return envelopeText(canonicalJson({ _type: TYPE, subject, predicateType: PREDICATE_TYPE, predicate: executed }), key);
}

function subjectOf({ step }: ExecutedStep): readonly object[] {
  return [{ name: "step", digest: { sha256: sha256Hex(stepText(step)) } }];
}

/** The key of a stored envelope. */
export function stepStatementKey(envelope: string): string {
  return artifactKey(STEP_STATEMENT, envelope);
}

export type StepStatementCheck =
  | { readonly status: "valid"; readonly executed: ExecutedStep }
  | { readonly status: "refused"; readonly reason: string };

/** Checks form, subject and signature. `keys`: of the peer; undefined: the caller knows by other means that it is authentic. */
export function checkStepStatement(envelope: string, keys: readonly VerifyingKey[] | undefined): StepStatementCheck {
  const opened = parseEnvelope(envelope);
  const executed = opened === undefined ? undefined : executedIn(opened.statement);
  if (opened === undefined || executed === undefined)
    return refused("it is not a step statement that this version knows");
  if (keys === undefined) return { status: "valid", executed };
  const check = checkSignature(opened.envelope, opened.statement, keys);
  if (check.status !== "trusted") return refused(`its signature is not of an admitted key (${check.status})`);
  if (check.origin !== executed.origin) return refused(`it names ${executed.origin} and is signed by ${check.origin}`);
  return { status: "valid", executed };
}

function refused(reason: string): StepStatementCheck {
  return { status: "refused", reason };
}

function executedIn(statement: string): ExecutedStep | undefined {
  try {
    const value: unknown = JSON.parse(statement);
    if (canonicalJson(value) !== statement) return undefined;
    const { _type, predicateType, predicate, subject } = (value ?? {}) as Readonly<Record<string, unknown>>;
    if (_type !== TYPE || predicateType !== PREDICATE_TYPE || !isExecuted(predicate)) return undefined;
    return canonicalJson(subject ?? null) === canonicalJson(subjectOf(predicate)) ? predicate : undefined;
  } catch {
    // No JSON, or nested too deeply.
    return undefined;
  }
}

const KEY = /^[0-9a-f]{64}$/;

function isExecuted(value: unknown): value is ExecutedStep {
  const fields = (value ?? {}) as Readonly<Record<string, unknown>>;
  const { kind, command, name, ...keys } = (fields["step"] ?? {}) as Readonly<Record<string, unknown>>;
  return (
    ["origin", "run", "runtime"].every((field) => typeof fields[field] === "string") &&
    ["generation", "attempt", "execution", "startedAt", "tookMs"].every((field) =>
      Number.isSafeInteger(fields[field]),
    ) &&
    kind === "task" &&
    typeof command === "string" &&
    typeof name === "string" &&
    Object.entries(keys).every(
      ([field, key]) => ["in", "out", "error"].includes(field) && typeof key === "string" && KEY.test(key),
    )
  );
}
