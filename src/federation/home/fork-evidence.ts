// Fork evidence: a text that proves to any site, with the origin's keys alone, that a log has two branches, and where they part.
//
// fork-evidence.F1. Two notes of the origin, and for each: the leaf after the last common record with its inclusion proof, and a proof
//   that the note extends the common prefix. Other leaves at one place of two signed trees are a fork; equal roots before it show that
//   no earlier record differs.
//   Two notes alone prove a fork as well, without its place: the longer tree has another root at the size of the shorter one.
// fork-evidence.F2. The text is canonical and the branches are in the order of their notes: two sites that find the same fork write
//   the same text.

import { canonicalJson, RepriseError } from "../../base/index.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import type { KeyHistory } from "../log/key-history.ts";
import type { Origin } from "../log/origin.ts";
import {
  consistencyProof,
  hashesOf,
  inclusionProof,
  rootOf,
  verifyConsistency,
  verifyInclusion,
  type TreeHead,
} from "../log/tree-proof.ts";
import { checkpointRoot } from "./checkpoint-root.ts";

/** One of the two logs. */
export interface Branch {
  readonly note: string;
  /** The hash of its first record that the other does not have, in hex. */
  readonly leaf: string;
  readonly inclusion: readonly string[];
  readonly consistency: readonly string[];
}

/** fork-evidence.F1 */
export type ForkEvidence = BranchEvidence | HeadEvidence;

export interface BranchEvidence {
  readonly kind: "branches";
  readonly origin: Origin;
  /** The number of common records. */
  readonly at: number;
  /** The root over them, in hex. */
  readonly root: string;
  readonly branches: readonly [Branch, Branch];
  readonly v: 1;
}

/** Two heads: `at` is one less than the size of the shorter log, the greatest number of records that both may have. */
export interface HeadEvidence {
  readonly kind: "heads";
  readonly origin: Origin;
  readonly at: number;
  /** The root of the longer log at the size of the shorter one, in hex, and the proof that it is. */
  readonly root: string;
  readonly consistency: readonly string[];
  /** The shorter log, then the longer one; of equal sizes, in the order of their texts. */
  readonly notes: readonly [string, string];
  readonly v: 1;
}

/** A log with the hashes of all records that its note covers. */
export interface ProvedLog {
  readonly checkpoint: Checkpoint;
  readonly leaves: readonly Buffer[];
}

/** Both logs have `at` common records and more. */
export function makeEvidence(at: number, first: ProvedLog, second: ProvedLog): BranchEvidence {
  const branches = [branchOf(at, first), branchOf(at, second)].sort((a, b) => (a.note < b.note ? -1 : 1));
  return {
    kind: "branches",
    origin: first.checkpoint.origin,
    at,
    root: rootOf(at, hashesOf(first.leaves)).toString("hex"),
    branches: branches as unknown as readonly [Branch, Branch],
    v: 1,
  };
}

function branchOf(at: number, { checkpoint: { note, size }, leaves }: ProvedLog): Branch {
  const hashAt = hashesOf(leaves.slice(0, size));
  return {
    note,
    leaf: leaves[at]!.toString("hex"),
    inclusion: inclusionProof(at, size, hashAt).map(hex),
    consistency: consistencyProof(at, size, hashAt).map(hex),
  };
}

/** fork-evidence.F2 */
export function evidenceText(evidence: ForkEvidence): string {
  return canonicalJson(evidence);
}

/** A shorter head, and a longer log that has another root at that size. */
export function makeHeadEvidence(shorter: Checkpoint, longer: ProvedLog): HeadEvidence {
  const hashAt = hashesOf(longer.leaves.slice(0, longer.checkpoint.size));
  const { note, size } = longer.checkpoint;
  const isSwapped = size === shorter.size && note < shorter.note;
  const root = isSwapped ? checkpointRoot(shorter) : rootOf(shorter.size, hashAt);
  return {
    kind: "heads",
    origin: shorter.origin,
    at: shorter.size - 1,
    root: root.toString("hex"),
    consistency: consistencyProof(shorter.size, size, hashAt).map(hex),
    notes: isSwapped ? [note, shorter.note] : [shorter.note, note],
    v: 1,
  };
}

/** The evidence of a text, if it proves a fork of the log with these keys; else it throws CHECKPOINT_INVALID or NOT_ADMITTED. */
export function verifyEvidence(text: string, keys: KeyHistory): ForkEvidence {
  const evidence = parse(text);
  if (evidence.origin !== keys.origin) throw unproved(`it is about ${evidence.origin}`);
  if (evidence.kind === "heads") verifyHeads(evidence, keys);
  else verifyBranches(evidence, keys);
  return evidence;
}

function openOf(origin: Origin, note: string, keys: KeyHistory): TreeHead {
  const checkpoint = keys.open(note);
  if (checkpoint.origin !== origin) throw unproved(`a note is not of ${origin}`);
  return { size: checkpoint.size, root: checkpointRoot(checkpoint) };
}

function verifyBranches({ origin, at, root, branches }: BranchEvidence, keys: KeyHistory): void {
  if (branches[0].leaf === branches[1].leaf) throw unproved("both branches have the same record there");
  for (const { note, leaf, inclusion, consistency } of branches) {
    const newer = openOf(origin, note, keys);
    if (!verifyInclusion(bytes(leaf), at, newer.size, newer.root, inclusion.map(bytes)))
      throw unproved(`record ${at + 1} is not proved to be in a branch`);
    if (!verifyConsistency({ size: at, root: bytes(root) }, newer, consistency.map(bytes)))
      throw unproved("a branch is not proved to extend the common records");
  }
}

function verifyHeads({ origin, at, root, consistency, notes }: HeadEvidence, keys: KeyHistory): void {
  const [shorter, longer] = [openOf(origin, notes[0], keys), openOf(origin, notes[1], keys)];
  if (shorter.size !== at + 1) throw unproved("its place is not that of the shorter note");
  if (shorter.root.equals(bytes(root))) throw unproved("both notes have the same root there");
  if (!verifyConsistency({ size: shorter.size, root: bytes(root) }, longer, consistency.map(bytes)))
    throw unproved("the longer note is not proved to have another root there");
}

/** The origin that a text of evidence is about; undefined: it is no such text. */
export function originOfEvidence(text: string): Origin | undefined {
  try {
    return parse(text).origin;
  } catch {
    return undefined;
  }
}

function parse(text: string): ForkEvidence {
  let value: unknown;
  try {
    value = JSON.parse(text);
    if (isEvidence(value) && canonicalJson(value) === text) return value;
  } catch (cause) {
    throw unproved("it is not JSON", cause);
  }
  throw unproved("it is no canonical text of evidence");
}

function isEvidence(value: unknown): value is ForkEvidence {
  const { kind, origin, at, root, branches, notes, consistency, v } = (value ?? {}) as Readonly<
    Record<string, unknown>
  >;
  if (v !== 1 || typeof origin !== "string" || !Number.isSafeInteger(at) || (at as number) < 0 || !isHash(root))
    return false;
  if (kind === "branches") return Array.isArray(branches) && branches.length === 2 && branches.every(isBranch);
  const areNotes = Array.isArray(notes) && notes.length === 2 && notes.every((note) => typeof note === "string");
  return kind === "heads" && areNotes && areHashes(consistency);
}

/** A log of 2^53 records has proofs of at most that many hashes. */
const MAX_HASHES = 110;

function isBranch(value: unknown): boolean {
  const { note, leaf, inclusion, consistency } = (value ?? {}) as Partial<Record<keyof Branch, unknown>>;
  const areHashes = (list: unknown): boolean => Array.isArray(list) && list.length <= MAX_HASHES && list.every(isHash);
  return typeof note === "string" && isHash(leaf) && areHashes(inclusion) && areHashes(consistency);
}

function areHashes(list: unknown): boolean {
  return Array.isArray(list) && list.length <= MAX_HASHES && list.every(isHash);
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

function unproved(why: string, cause?: unknown): RepriseError {
  return new RepriseError("CHECKPOINT_INVALID", `The evidence proves no fork: ${why}. Nothing is quarantined.`, {
    ...(cause !== undefined && { cause }),
  });
}
