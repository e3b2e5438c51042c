// Statement: who says that a run happened, when, where, and with which journal (in-toto Statement v1).
//
// statement.S1. A claim is deterministic; a statement is of one execution. It binds the chain, the tree over entries with their times,
//   the claim, the row and everything else that a bundle has: no line of a bundle can change without the statement.
// statement.S2. A blind statement has no digest that could be tested with a guessed value (blind.B1): its chain is blind as well.

import { canonicalJson, sha256Hex } from "../base/index.ts";
import type { Runtime } from "../kernel/index.ts";
import type { ParentReference, RunReference } from "./bundled-run.ts";

/** A list of texts, by the root of its tree and the number of its leaves. */
export interface TreeHead {
  readonly root: string;
  readonly size: number;
}

export interface Predicate extends RunReference {
  readonly origin: string;
  readonly engine: string;
  readonly chain: string;
  readonly journal: TreeHead;
  /** The key of the claim. */
  readonly claim: string;
  readonly runtimes: readonly Runtime[];
  readonly blind?: true;
  /** The digest of the header. */
  readonly row?: string;
  /** Texts of a bundle that no journal holds. */
  readonly evidence?: TreeHead;
  readonly attempts?: TreeHead;
  readonly uses?: TreeHead;
  readonly parent?: ParentReference;
  /** The generation before. */
  readonly previous?: { readonly chain?: string; readonly generation: number };
  /** The run that this one was forked from, and the chain value there. */
  readonly forked?: { readonly chain?: string; readonly run: string; readonly seq: number };
  /** Of a run that has not ended. */
  readonly status?: string;
  readonly tags?: readonly string[];
}

const TYPE = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE = "urn:reprise:run:v1";

export interface Statement {
  readonly _type: typeof TYPE;
  readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[];
  readonly predicateType: typeof PREDICATE_TYPE;
  readonly predicate: Predicate;
}

/** `claim` and `output` are texts; a blind statement has no digest of the output. */
export function statementText(predicate: Predicate, claim: string, output: string | undefined): string {
  const subject = [{ name: "claim", digest: { sha256: sha256Hex(claim) } }];
  if (output !== undefined && predicate.blind !== true)
    subject.push({ name: "output", digest: { sha256: sha256Hex(output) } });
  return canonicalJson({ _type: TYPE, subject, predicateType: PREDICATE_TYPE, predicate });
}

/** The statement of a text; undefined: it is none that this version knows. */
export function parseStatement(text: string): Statement | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
    // Also refuses what canonicalJson cannot write: nothing that is read from a statement fails later.
    if (canonicalJson(value) !== text) return undefined;
  } catch {
    return undefined;
  }
  const { _type, predicateType, predicate, subject } = (value ?? {}) as Partial<Statement>;
  if (_type !== TYPE || predicateType !== PREDICATE_TYPE || !Array.isArray(subject) || !isPredicate(predicate))
    return undefined;
  return value as Statement;
}

/** Its shape where this package reads it. Everything else in it is covered by the signature alone. */
function isPredicate(value: unknown): value is Predicate {
  const predicate = (value ?? {}) as Readonly<Record<string, unknown>>;
  const { journal, runtimes, parent, tags, forked, previous } = predicate;
  return (
    ["origin", "engine", "chain", "claim", "run"].every((name) => typeof predicate[name] === "string") &&
    ["row", "status"].every((name) => isTextOrAbsent(predicate[name])) &&
    Number.isSafeInteger(predicate["generation"]) &&
    isTreeHead(journal) &&
    ["evidence", "attempts", "uses"].every((name) => predicate[name] === undefined || isTreeHead(predicate[name])) &&
    Array.isArray(runtimes) &&
    runtimes.every(isFields) &&
    [parent, forked, previous].every((one) => one === undefined || isFields(one)) &&
    (tags === undefined || Array.isArray(tags))
  );
}

function isTreeHead(value: unknown): boolean {
  const { root, size } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return typeof root === "string" && Number.isSafeInteger(size);
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isFields(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
