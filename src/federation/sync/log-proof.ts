// Log proof: the records of a log in a bundle: that a run and its statement are in the log of the site that made them.
//
// log-proof.G1. The first two lines are the records of the run record and of the statement, each with the first checkpoint that covers it:
//   so a bundle has the same bytes whenever it is made. Then every key record before them, with the note that hands over.
// log-proof.G2. The first vkey of a site suffices, however old the bundle is: the key records lead to the key that signed (key-history.H3).
// log-proof.G3. A line that does not prove what it says is damage. Without such lines a bundle is checked as before.

import { RepriseError } from "../../base/index.ts";
import {
  checkBundle,
  leafHash,
  logLine,
  type BundleInput,
  type BundleReport,
  type LogLine,
  type VerifyingKey,
} from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import { parseCheckpoint, type Checkpoint } from "../log/checkpoint.ts";
import { KeyHistory } from "../log/key-history.ts";
import { firstEpoch, type Origin } from "../log/origin.ts";
import { recordText, type LogRecord } from "../log/record.ts";
import { hashesOf, inclusionProof, verifyInclusion, type HashAt } from "../log/tree-proof.ts";
import { readRecords } from "./tile-files.ts";

/** The lines of a run of this site, from whichever epoch of its log has it; none, if the home has no log of it. */
export function ownLogLines(home: Home, keys: readonly string[]): readonly string[] {
  for (const { id, own } of home.origins()) {
    const lines = own ? logLines(home, id, keys) : [];
    if (lines.length > 0) return lines;
  }
  return [];
}

/** log-proof.G1. None, if the log of the home does not have these keys under a checkpoint. */
export function logLines(home: Home, origin: Origin, keys: readonly string[]): readonly string[] {
  const puts = keys.flatMap((key) => home.findPut(origin, key) ?? []);
  if (puts.length < keys.length) return [];
  const last = Math.max(...puts.map(({ n }) => n));
  const terms = home.keys(origin).terms.filter(({ n }) => n > 0 && n <= last);
  const keyRecords = terms.flatMap(({ n }) => home.readLog(origin, n - 1, 1));
  const rows = [...puts, ...keyRecords];
  const checkpoints = rows.map(({ n }) => home.firstCheckpointCovering(origin, n));
  if (checkpoints.some((one) => one === undefined)) return [];
  const size = Math.max(...checkpoints.map((one) => one!.size));
  const hashAt = hashesOf([...readRecords(home, origin, 0, size)].map(({ rec }) => leafHash(rec)));
  return rows.map(({ n, rec }, index) => lineOf(rec, n, checkpoints[index]!, hashAt));
}

function lineOf(record: string, n: number, { size, note }: Checkpoint, hashAt: HashAt): string {
  const proof = inclusionProof(n - 1, size, hashAt).map((hash) => hash.toString("base64"));
  return logLine({ record, proof, checkpoint: note });
}

/** As `checkBundle`, and checks the records of a log that a bundle has. */
export async function* checkBundleWithLog(
  input: BundleInput,
  keys: readonly VerifyingKey[],
): AsyncGenerator<BundleReport> {
  for await (const report of checkBundle(input, keys)) yield checkLogProof(report, keys);
}

/** The report of a section after the records of its log were checked: they may show damage, and they may vouch for the statement. */
export function checkLogProof(report: BundleReport, keys: readonly VerifyingKey[]): BundleReport {
  const { log, statement, problem } = report;
  if (log.length === 0 || statement === undefined || problem !== undefined) return report;
  try {
    const records = log.map(checkLine);
    checkNamed(report, records);
    const origin = firstEpoch(records[0]!.record.o);
    if (origin !== firstEpoch(statement.origin))
      throw unproved(log[0]!.line, `is of ${origin}, not of the statement's origin`);
    const first = keys.find((key) => firstEpoch(key.origin) === origin && isFirst(key));
    if (first === undefined || report.signature.status === "trusted") return report;
    // The first key of a later epoch is the newest one of the epoch before, which these lines do not tell.
    if (records[0]!.record.o !== first.origin && !isSignedBy(records, first)) return report;
    followKeys(records, first);
    return { ...report, signature: { status: "trusted", origin: statement.origin } };
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    const line = Number(error.details?.["line"] ?? log[0]!.line);
    return { ...report, problem: { kind: "damaged", line, message: error.message } };
  }
}

interface CheckedLine {
  readonly line: number;
  readonly record: LogRecord;
  readonly checkpoint: Checkpoint;
}

/** log-proof.G3 */
function checkLine({ record: text, proof, checkpoint: note, line }: LogLine & { readonly line: number }): CheckedLine {
  const record = parse(text, line);
  const checkpoint = at(line, () => parseCheckpoint(note));
  const hashes = proof.map((hash) => Buffer.from(hash, "base64"));
  const root = Buffer.from(checkpoint.root, "base64");
  const isProved = verifyInclusion(leafHash(text), record.n - 1, checkpoint.size, root, hashes);
  if (!isProved || checkpoint.origin !== record.o) throw unproved(line, "does not prove its record");
  return { line, record, checkpoint };
}

function parse(text: string, line: number): LogRecord {
  try {
    const record = JSON.parse(text) as LogRecord;
    if (recordText(record) === text && Number.isSafeInteger(record.n)) return record;
  } catch {
    // Said below.
  }
  throw unproved(line, "has a record that is none");
}

/** log-proof.G1 */
function checkNamed({ keys }: BundleReport, records: readonly CheckedLine[]): void {
  for (const [index, key] of [keys.record, keys.statement].entries()) {
    const line = records[index];
    if (line?.record.k !== key || line.record.op !== "put")
      throw unproved(line?.line ?? 0, `does not put the ${index === 0 ? "run record" : "statement"} of this run`);
  }
}

function isFirst(key: VerifyingKey): boolean {
  try {
    KeyHistory.genesis(key.vkey);
    return true;
  } catch {
    return false;
  }
}

function isSignedBy([line]: readonly CheckedLine[], first: VerifyingKey): boolean {
  try {
    KeyHistory.genesis(first.vkey).forEpoch(line!.record.o).open(line!.checkpoint.note);
    return true;
  } catch {
    return false;
  }
}

/** log-proof.G2. Every checkpoint is signed by the key that was in force. */
function followKeys(records: readonly CheckedLine[], first: VerifyingKey): void {
  const { o } = records[0]!.record;
  const genesis = KeyHistory.genesis(first.vkey);
  const history = o === genesis.origin ? genesis : genesis.forEpoch(o);
  for (const { record, checkpoint, line } of records.slice(2)) {
    if (record.op !== "key" || record.v === undefined || checkpoint.size !== record.n)
      throw unproved(line, "is no record of a key under the note that hands over");
    at(line, () => history.open(checkpoint.note));
    at(line, () => history.add(record.n, record.v!));
  }
  for (const { checkpoint, line } of records.slice(0, 2)) at(line, () => history.open(checkpoint.note));
}

function at<T>(line: number, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw unproved(line, `is not signed as it must be: ${(cause as Error).message}`);
  }
}

function unproved(line: number, why: string): RepriseError {
  return new RepriseError("BUNDLE_DAMAGED", `Line ${line} of the bundle ${why}.`, { details: { line } });
}
