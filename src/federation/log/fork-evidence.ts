// Fork evidence: a proof that a site signed two logs which do not extend each other, and where they part.
//
// fork-evidence.E1. Both branches have the same tree over the first `at` records, and each has another record `at + 1`. A branch shows it
//   with a signed head, a consistency proof from the common root and an inclusion proof of its record. So the proof grows with the
//   logarithm of the log, and it verifies offline, with the keys of the origin alone.
// fork-evidence.E2. The key in force at `at + 1` signs both heads. So the head of a branch lies before its next key record, or is the one
//   that hands over (key-history.H2).
// fork-evidence.E3. A site that receives evidence keeps the first `at` records of the origin. Of several the smallest `at` counts: sites that
//   have the same evidence keep the same records.

import { canonicalJson, RepriseError } from "../../base/index.ts";
import { leafHash } from "../../receipts/index.ts";
import { openCheckpoint, parseCheckpoint, type Checkpoint } from "./checkpoint.ts";
import type { KeyHistory } from "./key-history.ts";
import { MAX_NOTE_BYTES } from "./note.ts";
import type { Origin } from "./origin.ts";
import { MAX_RECORD_BYTES } from "./record.ts";
import {
  consistencyProof,
  inclusionProof,
  rootOf,
  verifyConsistency,
  verifyInclusion,
  type HashAt,
} from "./tree-proof.ts";

/** One of the two logs. Hashes are base64. */
export interface ForkBranch {
  /** A signed head that covers the record. */
  readonly note: string;
  /** The text of record `at + 1`. */
  readonly record: string;
  readonly consistency: readonly string[];
  readonly inclusion: readonly string[];
}

export interface ForkEvidence {
  readonly origin: Origin;
  /** The number of common records. */
  readonly at: number;
  /** The root over the common records, in base64. */
  readonly root: string;
  readonly branches: readonly [ForkBranch, ForkBranch];
  readonly v: 1;
}

/** A copy of a log with a signed head that covers the record behind the common ones. */
export interface SignedCopy {
  readonly checkpoint: Checkpoint;
  /** The text of record `at + 1`. */
  readonly record: string;
  readonly hashAt: HashAt;
}

/** fork-evidence.E1. The proof that two copies part after `at` records. */
export function forkEvidence(at: number, first: SignedCopy, second: SignedCopy): ForkEvidence {
  const [a, b] = [branchOf(at, first), branchOf(at, second)];
  return {
    at,
    // One text, whichever copy a site had first.
    branches: a.record < b.record ? [a, b] : [b, a],
    origin: first.checkpoint.origin,
    root: rootOf(at, first.hashAt).toString("base64"),
    v: 1,
  };
}

function branchOf(at: number, { checkpoint, record, hashAt }: SignedCopy): ForkBranch {
  const { size, note } = checkpoint;
  return {
    consistency: consistencyProof(at, size, hashAt).map((hash) => hash.toString("base64")),
    inclusion: inclusionProof(at, size, hashAt).map((hash) => hash.toString("base64")),
    note,
    record,
  };
}

export function forkEvidenceText(evidence: ForkEvidence): string {
  return canonicalJson(evidence);
}

/** Room for two notes, two records and four proofs. */
const MAX_EVIDENCE_BYTES = 4 * (MAX_NOTE_BYTES + MAX_RECORD_BYTES);
const MAX_PROOF_HASHES = 64;

/** fork-evidence.E1. Reads evidence that another site sent, and verifies it. */
export function openForkEvidence(text: string, history: KeyHistory): ForkEvidence {
  const evidence = parse(text);
  const { origin, at, root, branches } = evidence;
  if (origin !== history.origin) throw invalid(`is about ${origin}, not ${history.origin}`);
  if (branches[0].record === branches[1].record) throw invalid("shows the same record twice");
  for (const branch of branches) {
    // fork-evidence.E2
    const checkpoint = openCheckpoint(branch.note, [history.keyAt(at + 1)]);
    const head = { size: checkpoint.size, root: Buffer.from(checkpoint.root, "base64") };
    const common = { size: at, root: Buffer.from(root, "base64") };
    if (!verifyConsistency(common, head, branch.consistency.map(hashOf)))
      throw invalid(`does not show that the head of ${head.size} records extends the first ${at}`);
    if (!verifyInclusion(leafHash(branch.record), at, head.size, head.root, branch.inclusion.map(hashOf)))
      throw invalid(`does not show that record ${at + 1} is in the head of ${head.size} records`);
  }
  return evidence;
}

function hashOf(encoded: string): Buffer {
  return Buffer.from(encoded, "base64");
}

function parse(text: string): ForkEvidence {
  if (text.length > MAX_EVIDENCE_BYTES) throw invalid(`has more than ${MAX_EVIDENCE_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid("is not JSON");
  }
  if (!isEvidence(value) || canonicalJson(value) !== text) throw invalid("is not the canonical text of evidence");
  return value;
}

type Fields = Readonly<Record<string, unknown>>;

function isEvidence(value: unknown): value is ForkEvidence {
  if (typeof value !== "object" || value === null) return false;
  const { at, branches, origin, root, v } = value as Fields;
  if (Object.keys(value).length !== 5 || v !== 1 || typeof origin !== "string" || !isHash(root)) return false;
  if (!Number.isSafeInteger(at) || (at as number) < 0) return false;
  return Array.isArray(branches) && branches.length === 2 && branches.every(isBranch);
}

function isBranch(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { consistency, inclusion, note, record } = value as Fields;
  const isProof = (proof: unknown): boolean =>
    Array.isArray(proof) && proof.length <= MAX_PROOF_HASHES && proof.every(isHash);
  if (Object.keys(value).length !== 4 || !isProof(consistency) || !isProof(inclusion)) return false;
  return typeof note === "string" && typeof record === "string" && record.isWellFormed();
}

function isHash(value: unknown): boolean {
  return typeof value === "string" && /^[A-Za-z0-9+/]{43}=$/.test(value);
}

/** The origin that evidence is about, before it is verified: to find the keys. */
export function originOfEvidence(text: string): Origin {
  const { origin, branches } = parse(text);
  if (branches.some(({ note }) => parseCheckpoint(note).origin !== origin)) throw invalid("is about two origins");
  return origin;
}

function invalid(why: string): RepriseError {
  return new RepriseError("EVIDENCE_INVALID", `The evidence of a fork ${why}. It proves nothing and is not kept.`);
}
