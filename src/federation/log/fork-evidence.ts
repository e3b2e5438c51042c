// Fork evidence: a proof that a site signed two logs which do not extend each other, and where they part.
//
// fork-evidence.E1. Both branches have the same tree over the first `at` records, and each has another record `at + 1`. A branch shows it
//   with a signed head, a consistency proof from the common root and an inclusion proof of the leaf. So the proof grows with the
//   logarithm of the log, and it verifies offline, with the keys of the origin alone.
// fork-evidence.E2. The key in force at `at + 1` signs both heads. So the head of a branch lies before its next key record, or is the one
//   that hands over (key-history.H2): the first checkpoint that covers the record is such a head.
// fork-evidence.E3. A site that receives evidence keeps the first `at` records of the origin. Of several the smallest `at` counts: sites
//   that have the same evidence keep the same records.
// fork-evidence.E4. The text is canonical, and the branches are in the order of their notes: sites that find the same fork write the
//   same text.

import { canonicalJson, RepriseError } from "../../base/index.ts";
import { openCheckpoint, type Checkpoint } from "./checkpoint.ts";
import type { KeyHistory } from "./key-history.ts";
import { MAX_NOTE_BYTES } from "./note.ts";
import type { Origin } from "./origin.ts";
import {
  consistencyProof,
  hashesOf,
  inclusionProof,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from "./tree-proof.ts";

/** One of the two logs. Hashes are hex. */
export interface ForkBranch {
  /** A signed head that covers the record. */
  readonly note: string;
  /** The hash of record `at + 1`. */
  readonly leaf: string;
  readonly consistency: readonly string[];
  readonly inclusion: readonly string[];
}

export interface ForkEvidence {
  readonly origin: Origin;
  /** The number of common records. */
  readonly at: number;
  /** The root over the common records, in hex. */
  readonly root: string;
  readonly branches: readonly [ForkBranch, ForkBranch];
  readonly v: 1;
}

/** A copy of a log with a signed head (fork-evidence.E2), and the hashes of at least the records that the head covers. */
export interface SignedCopy {
  readonly checkpoint: Checkpoint;
  readonly leaves: readonly Buffer[];
}

/** fork-evidence.E1. The proof that two copies part after `at` records. */
export function forkEvidence(at: number, first: SignedCopy, second: SignedCopy): ForkEvidence {
  const [a, b] = [branchOf(at, first), branchOf(at, second)];
  return {
    at,
    branches: a.note < b.note ? [a, b] : [b, a],
    origin: first.checkpoint.origin,
    root: rootOf(at, hashesOf(first.leaves)).toString("hex"),
    v: 1,
  };
}

function branchOf(at: number, { checkpoint: { size, note }, leaves }: SignedCopy): ForkBranch {
  const hashAt = hashesOf(leaves.slice(0, size));
  return {
    consistency: consistencyProof(at, size, hashAt).map(hex),
    inclusion: inclusionProof(at, size, hashAt).map(hex),
    leaf: hex(leaves[at]!),
    note,
  };
}

/** fork-evidence.E4 */
export function forkEvidenceText(evidence: ForkEvidence): string {
  return canonicalJson(evidence);
}

/** Room for two notes and four proofs. */
const MAX_EVIDENCE_BYTES = 3 * MAX_NOTE_BYTES;
const MAX_PROOF_HASHES = 64;

/** fork-evidence.E1. Reads evidence that another site sent, and verifies it. */
export function openForkEvidence(text: string, history: KeyHistory): ForkEvidence {
  const evidence = findForkEvidence(text);
  if (evidence === undefined) throw invalid("is not the canonical text of evidence");
  const { origin, at, root, branches } = evidence;
  if (origin !== history.origin) throw invalid(`is about ${origin}, not ${history.origin}`);
  if (branches[0].leaf === branches[1].leaf) throw invalid("shows the same record twice");
  for (const branch of branches) {
    // fork-evidence.E2
    const checkpoint = openCheckpoint(branch.note, [history.keyAt(at + 1)]);
    const head = { size: checkpoint.size, root: Buffer.from(checkpoint.root, "base64") };
    if (!verifyConsistency({ size: at, root: bytes(root) }, head, branch.consistency.map(bytes)))
      throw invalid(`does not show that the head of ${head.size} records extends the first ${at}`);
    if (!verifyInclusion(bytes(branch.leaf), at, head.size, head.root, branch.inclusion.map(bytes)))
      throw invalid(`does not show that record ${at + 1} is in the head of ${head.size} records`);
  }
  return evidence;
}

/** What a text says, before it is verified: to find the keys. Undefined: it is no evidence of a fork. */
export function findForkEvidence(text: string): ForkEvidence | undefined {
  if (text.length > MAX_EVIDENCE_BYTES) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isEvidence(value) && canonicalJson(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
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
  const { consistency, inclusion, leaf, note } = value as Fields;
  const isProof = (proof: unknown): boolean =>
    Array.isArray(proof) && proof.length <= MAX_PROOF_HASHES && proof.every(isHash);
  if (Object.keys(value).length !== 4 || !isProof(consistency) || !isProof(inclusion)) return false;
  return typeof note === "string" && isHash(leaf);
}

function isHash(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function hex(hash: Buffer): string {
  return hash.toString("hex");
}

function bytes(hash: string): Buffer {
  return Buffer.from(hash, "hex");
}

function invalid(why: string): RepriseError {
  return new RepriseError("EVIDENCE_INVALID", `The evidence of a fork ${why}. It proves nothing and is not kept.`);
}
