// Record: one line of a log, and what a reader refuses.
//
// record.R1. The text is canonical JSON {c, k?, n, o, op, s?, v?, x?, y?} of at most 65,535 bytes: an entry bundle counts bytes in 16 bits.
// record.R2. `n` is dense from 1: the cursor. There is no back pointer; the tree is the chain.
// record.R3. `c` = 1 + max(c of the record before, c of the records that `y` names). So what an author saw sorts before what it wrote.
//   A reader that holds those records checks equality. Otherwise it refuses a jump of more than 2^32: the clock cannot be used up.
// record.R4. `put` has `k`, and `s` if it is a link; `tomb` and `erase` have `x`, a cell; `key` has `v`, a vkey of this origin.
// record.R5. A record holds keys only. Who has the log alone learns no content.

import { RepriseError } from "../../base/index.ts";
import { parseVkey } from "../../receipts/index.ts";
import { isOrigin, type Origin } from "./origin.ts";

export type RecordOp = "put" | "tomb" | "erase" | "key";

export interface LogRecord {
  /** Lamport value: the order between origins. */
  readonly c: number;
  /** Counts from 1. */
  readonly n: number;
  readonly o: Origin;
  readonly op: RecordOp;
  /** The key of what is put. */
  readonly k?: string;
  /** The slot of a link. */
  readonly s?: string;
  /** The vkey that follows. */
  readonly v?: string;
  /** The cell that is hidden or erased. */
  readonly x?: string;
  /** Heads seen since the record before: origin to n. */
  readonly y?: Readonly<Record<Origin, number>>;
}

/** record.R1 */
export const MAX_RECORD_BYTES = 65_535;
/** record.R3 */
export const MAX_CLOCK_JUMP = 2 ** 32;

const KEY = /^[0-9a-f]{64}$/;
const CELL = /^[as]:[0-9a-f]{64}$/;

/** What a reader knows of the log before the record. */
export interface ExpectedRecord {
  readonly origin: Origin;
  readonly n: number;
  /** `c` of the record before; 0 before the first. */
  readonly after: number;
  /** `c` of a record of another origin; undefined: the reader does not hold it. */
  readonly clockOf?: (origin: Origin, n: number) => number | undefined;
}

/** record.R1. The canonical text, which is what the tree hashes. */
export function recordText(record: LogRecord): string {
  const { c, k, n, o, op, s, v, x, y } = record;
  // The text of canonicalJson, in the order of its keys: a reader of a log pays for it with every record.
  const text =
    `{"c":${c},` +
    (k === undefined ? "" : `"k":"${k}",`) +
    `"n":${n},"o":"${o}","op":"${op}"` +
    (s === undefined ? "" : `,"s":"${s}"`) +
    (v === undefined ? "" : `,"v":"${v}"`) +
    (x === undefined ? "" : `,"x":"${x}"`) +
    (y === undefined ? "" : `,"y":${headsText(y)}`) +
    "}";
  if (text.length > MAX_RECORD_BYTES)
    throw invalid(o, n, `has ${text.length} bytes; a record has at most ${MAX_RECORD_BYTES}`);
  return text;
}

/** Origins are ASCII: their order in bytes is that of the text. */
function headsText(heads: Readonly<Record<Origin, number>>): string {
  const members = Object.keys(heads)
    .sort()
    .map((origin) => `"${origin}":${heads[origin]}`);
  return `{${members.join(",")}}`;
}

/** The record of a text that another site sent. Refuses with RECORD_INVALID what breaks a rule. */
export function parseRecord(text: string, expected: ExpectedRecord): LogRecord {
  const { origin, n } = expected;
  // A record is ASCII: its length is that of its bytes.
  if (text.length > MAX_RECORD_BYTES)
    throw invalid(origin, n, `has ${text.length} bytes; a record has at most ${MAX_RECORD_BYTES}`);
  const record = shapeOf(text, expected);
  if (record.o !== origin) throw invalid(origin, n, `names the origin ${JSON.stringify(record.o)}`);
  if (record.n !== n) throw invalid(origin, n, `has the number ${record.n}: numbers have neither gaps nor repeats`);
  checkClock(record, expected);
  if (record.op === "key") checkKeyRecord(record);
  // Also finds a member that occurs twice.
  if (recordText(record) !== text) throw invalid(origin, n, "is not canonical text");
  return record;
}

/** Members of a text that may be a record, before it is checked: none, if it is no object. */
export function membersOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

function shapeOf(text: string, { origin, n }: ExpectedRecord): LogRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid(origin, n, "is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(origin, n, "is not an object");
  const fields = value as Readonly<Record<string, unknown>>;
  const problem = problemOf(fields);
  if (problem !== undefined) throw invalid(origin, n, problem);
  return value as LogRecord;
}

/** record.R4 */
const FIELDS: Readonly<Record<RecordOp, { readonly needs: readonly string[]; readonly mayHave: readonly string[] }>> = {
  put: { needs: ["k"], mayHave: ["s"] },
  tomb: { needs: ["x"], mayHave: [] },
  erase: { needs: ["x"], mayHave: [] },
  key: { needs: ["v"], mayHave: [] },
};

function problemOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const { c, k, n, o, op, s, v, x, y } = fields;
  if (!isCount(c)) return "has a clock `c` that is no whole number from 1 to 2^53-1";
  if (!isCount(n)) return "has a number `n` that is no whole number from 1 to 2^53-1";
  if (!isOrigin(o)) return "has an `o` that is no origin";
  if (typeof op !== "string" || !Object.hasOwn(FIELDS, op)) return `has the unknown op ${JSON.stringify(op)}`;
  const { needs, mayHave } = FIELDS[op as RecordOp];
  for (const name of needs) if (fields[name] === undefined) return `of op ${op} lacks \`${name}\``;
  const known = new Set(["c", "n", "o", "op", "y", ...needs, ...mayHave]);
  const unknown = Object.keys(fields).find((name) => !known.has(name));
  if (unknown !== undefined) return `of op ${op} has the member ${JSON.stringify(unknown.slice(0, 40))}`;
  if (k !== undefined && !isMatch(KEY, k)) return "has a `k` that is no key of 64 hex digits";
  if (s !== undefined && !isMatch(KEY, s)) return "has an `s` that is no key of 64 hex digits";
  if (x !== undefined && !isMatch(CELL, x)) return "has an `x` that is no cell: a:<key> or s:<slot>";
  if (v !== undefined && typeof v !== "string") return "has a `v` that is no text";
  if (y !== undefined && !areHeads(y, o)) return "has a `y` that is no object of other origins and numbers";
  return undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function isMatch(pattern: RegExp, value: unknown): boolean {
  return typeof value === "string" && pattern.test(value);
}

/** An empty `y` is absent: one text per record. */
function areHeads(value: unknown, own: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const heads = Object.entries(value);
  return heads.length > 0 && heads.every(([origin, n]) => isOrigin(origin) && origin !== own && isCount(n));
}

/** record.R3 */
function checkClock(record: LogRecord, { origin, n, after, clockOf }: ExpectedRecord): void {
  let known = after;
  let holdsAll = true;
  for (const [seen, at] of Object.entries(record.y ?? {})) {
    const clock = clockOf?.(seen, at);
    if (clock === undefined) holdsAll = false;
    else known = Math.max(known, clock);
  }
  const { c } = record;
  if (holdsAll && c !== known + 1) throw invalid(origin, n, `has the clock ${c}, where ${known + 1} follows`);
  if (c <= known) throw invalid(origin, n, `has the clock ${c}, which is not above ${known}`);
  if (c - known > MAX_CLOCK_JUMP) throw invalid(origin, n, `has the clock ${c}, more than 2^32 above ${known}`);
}

function checkKeyRecord({ o, n, v = "" }: LogRecord): void {
  let vkey: string;
  let origin: Origin;
  try {
    ({ vkey, origin } = parseVkey(v));
  } catch (cause) {
    throw invalid(o, n, "has a `v` that is no vkey", cause);
  }
  if (vkey !== v) throw invalid(o, n, "has a `v` that is not the canonical text of its vkey");
  if (origin !== o) throw invalid(o, n, `names a key of ${origin}: a log names its own keys only`);
}

/** What a record says, without its place in the log. */
export type RecordBody = Pick<LogRecord, "op" | "k" | "s" | "v" | "x">;

/** The end of a log: what the next record follows. */
export interface LogEnd {
  readonly origin: Origin;
  /** The number of records. */
  readonly size: number;
  /** `c` of the last record; 0 for an empty log. */
  readonly clock: number;
}

/** record.R3. The record that follows the end of a log, by an author who has seen these heads since its last record. */
export function nextRecord(
  end: LogEnd,
  body: RecordBody,
  seen: Readonly<Record<Origin, { readonly n: number; readonly c: number }>> = {},
): LogRecord {
  const heads = Object.entries(seen);
  const c = 1 + heads.reduce((most, [, head]) => Math.max(most, head.c), end.clock);
  const y = heads.length === 0 ? {} : { y: Object.fromEntries(heads.map(([origin, { n }]) => [origin, n])) };
  return { c, n: end.size + 1, o: end.origin, ...body, ...y };
}

function invalid(origin: Origin, n: number, why: string, cause?: unknown): RepriseError {
  return new RepriseError("RECORD_INVALID", `Record ${n} of ${origin} ${why}. The rest of this log is not taken.`, {
    details: { origin, n },
    ...(cause !== undefined && { cause }),
  });
}
