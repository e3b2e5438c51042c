// Bundle lines: the text of a bundle, one JSON value per line.
//
// bundle-lines.L1. A section per run: header, envelope, claim, run record, entries, then what no journal holds: uses, evidence,
//   attempts. Of a site with a log its records follow: of the run record, of the statement, and of each key. A file may have several
//   sections, those of a family.
// bundle-lines.L2. Every line is canonical: another text of the same value is damage. So the same run gives the same bytes.
// bundle-lines.L3. A reader keeps one line, and refuses a longer one than MAX_LINE_BYTES: a file of any size needs little memory.

import { canonicalJson, RepriseError } from "../base/index.ts";
import { CHAIN_START, chainAfter, markOf, type Entry, type EntryType } from "../kernel/index.ts";
import type { BundledRun } from "./bundled-run.ts";
import type { Envelope } from "./dsse.ts";
import type { JournalSource } from "./journal-source.ts";
import type { PlainEntry } from "./journal-tree.ts";

/** What a bundle shows of the payloads: all, their digests, or blind digests. */
export type BundleForm = "full" | "hash-only" | "blind";

export interface BundleHeader {
  readonly reprise: "bundle/1";
  readonly form: BundleForm;
  readonly run: BundledRun;
}

/** An artifact with its key, type and text. */
export interface ArtifactLine {
  readonly k: string;
  readonly s: string;
  readonly t: string;
}

/** A record of the site's log: its text, the proof that it is in the log, and the signed checkpoint that covers it. */
export interface LogLine {
  readonly record: string;
  /** Hashes in base64. */
  readonly proof: readonly string[];
  readonly checkpoint: string;
}

/** Parts that no journal holds, in this order. */
export const PARTS = ["uses", "evidence", "attempts"] as const;
export type Part = (typeof PARTS)[number];

export type BundleLine =
  | { readonly line: "header"; readonly header: BundleHeader }
  | { readonly line: "envelope"; readonly envelope: Envelope }
  | { readonly line: "artifact"; readonly artifact: ArtifactLine }
  | { readonly line: "entry"; readonly entry: PlainEntry }
  /** The leaf of an entry whose payload is not shown. */
  | { readonly line: "leaf"; readonly seq: number; readonly text: string }
  | { readonly line: "part"; readonly part: Part; readonly text: string }
  | { readonly line: "log"; readonly log: LogLine };

/** A line with the place where it begins in the file. */
export interface Placed<T> {
  readonly value: T;
  /** Counts from 1. */
  readonly number: number;
  readonly offset: number;
}

export function headerLine(form: BundleForm, run: BundledRun): string {
  return canonicalJson({ reprise: "bundle/1", form, run } satisfies BundleHeader);
}

export function artifactLine(key: string, type: string, text: string): string {
  return canonicalJson({ k: key, s: text, t: type } satisfies ArtifactLine);
}

export function entryLine(entry: PlainEntry): string {
  const { seq, type, command, at, tookMs = null, data, execution, worker, startedAt } = entry;
  const more = { execution, startedAt, worker };
  const has = execution !== undefined || startedAt !== undefined || worker !== undefined;
  return JSON.stringify([seq, type, command, at, tookMs, data, ...(has ? [more] : [])]);
}

export function partLine(part: Part, text: string): string {
  return canonicalJson({ [part]: text });
}

export function logLine({ checkpoint, proof, record }: LogLine): string {
  return canonicalJson({ checkpoint, proof, record } satisfies LogLine);
}

/** Bytes that can be read more than once, from any offset: a file. */
export interface BundleInput {
  read(from: number): AsyncIterable<Uint8Array>;
}

/** bundle-lines.L3 */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;
const NEWLINE = 10;

export function damaged(line: number, why: string): RepriseError {
  return new RepriseError("BUNDLE_DAMAGED", `Line ${line} of the bundle ${why}.`, { details: { line } });
}

/** The lines of a file from an offset on, which is the beginning of line `number`. */
export async function* readLines(input: BundleInput, offset = 0, number = 1): AsyncGenerator<Placed<string>> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let pieces: Uint8Array[] = [];
  let length = 0;
  const next = (): Placed<string> => {
    let value: string;
    try {
      value = decoder.decode(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces));
    } catch {
      throw damaged(number, "is not UTF-8 text");
    }
    const line = { value, number, offset };
    offset += length + 1;
    number += 1;
    pieces = [];
    length = 0;
    return line;
  };
  for await (const chunk of input.read(offset)) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      pieces.push(chunk.subarray(from, end));
      length += end - from;
      from = end + 1;
      yield next();
    }
    if (from < chunk.length) pieces.push(chunk.slice(from));
    length += chunk.length - from;
    if (length > MAX_LINE_BYTES) throw damaged(number, `is longer than ${MAX_LINE_BYTES / 1024 / 1024} MiB`);
  }
  if (length > 0) throw damaged(number, "is cut off: its end is missing");
}

/** The lines of a bundle, parsed. Their shape is checked, their content is not. */
export async function* readBundle(input: BundleInput, offset = 0, number = 1): AsyncGenerator<Placed<BundleLine>> {
  for await (const { value, ...place } of readLines(input, offset, number))
    yield { value: parseBundleLine(value, place.number), ...place };
}

/** bundle-lines.L2. One line, parsed. */
export function parseBundleLine(text: string, line: number): BundleLine {
  const { value, parsed } = parseLine(text, line);
  if (canonicalText(value, parsed) !== text) throw damaged(line, "is not canonical text");
  return parsed;
}

function parseLine(text: string, line: number): { readonly value: unknown; readonly parsed: BundleLine } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(line, "is not JSON");
  }
  const parsed = Array.isArray(value) ? entryOf(value) : isObject(value) ? objectLineOf(value, text) : undefined;
  if (parsed === undefined) throw damaged(line, "is of no kind that this version knows");
  return { value, parsed };
}

/** Undefined: the value has no canonical text. */
function canonicalText(value: unknown, parsed: BundleLine): string | undefined {
  try {
    return parsed.line === "entry" ? entryLine(parsed.entry) : canonicalJson(value);
  } catch {
    return undefined;
  }
}

function objectLineOf(value: Fields, text: string): BundleLine | undefined {
  if ("reprise" in value) return isHeader(value) ? { line: "header", header: value } : undefined;
  if ("payload" in value) return isEnvelope(value) ? { line: "envelope", envelope: value } : undefined;
  if ("k" in value) return isArtifact(value) ? { line: "artifact", artifact: value } : undefined;
  if ("record" in value) return isLog(value) ? { line: "log", log: value } : undefined;
  if ("seq" in value) return isSeq(value["seq"]) ? { line: "leaf", seq: value["seq"], text } : undefined;
  const [part, ...more] = Object.keys(value);
  const content = value[part ?? ""];
  if (more.length > 0 || typeof content !== "string" || !isPart(part)) return undefined;
  return { line: "part", part, text: content };
}

type Fields = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

function isPart(name: string | undefined): name is Part {
  return (PARTS as readonly (string | undefined)[]).includes(name);
}

/** A lone surrogate has the UTF-8 bytes of U+FFFD, and so the digest of another text. */
function isText(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

function isSeq(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Math.abs(value as number) <= 8.64e15;
}

const FORMS: readonly unknown[] = ["full", "hash-only", "blind"] satisfies BundleForm[];

function isHeader(value: Fields): value is Fields & BundleHeader {
  const { reprise, form, run } = value;
  if (Object.keys(value).length !== 3 || reprise !== "bundle/1") return false;
  return FORMS.includes(form) && isObject(run) && isBundledRun(run);
}

/** Longer than any id or name that a store accepts. */
const MAX_NAME_LENGTH = 1_024;

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isBundledRun(run: Fields): boolean {
  const texts = ["id", "definition", "kind", "status"];
  const counts = ["generation", "version", "arrivals", "read", "unread", "lostTurns"];
  const { tags, parent, createdAt, endedAt, errorCode, priority } = run;
  return (
    texts.every((name) => typeof run[name] === "string" && run[name] !== "" && run[name].length <= MAX_NAME_LENGTH) &&
    counts.every((name) => isCount(run[name])) &&
    Number.isSafeInteger(priority) &&
    isTime(createdAt) &&
    (endedAt === undefined || isTime(endedAt)) &&
    (errorCode === undefined || typeof errorCode === "string") &&
    Array.isArray(tags) &&
    tags.every((tag) => typeof tag === "string") &&
    new Set(tags).size === tags.length &&
    (parent === undefined || isParent(parent))
  );
}

function isParent(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { run, generation, command } = value;
  return typeof run === "string" && isCount(generation) && typeof command === "string";
}

function isEnvelope(value: Fields): value is Fields & Envelope {
  const { payload, payloadType, signatures } = value;
  if (typeof payload !== "string" || typeof payloadType !== "string" || !Array.isArray(signatures)) return false;
  return Object.keys(value).length === 3 && signatures.length <= 1 && signatures.every(isSignature);
}

function isSignature(value: unknown): boolean {
  if (!isObject(value)) return false;
  return Object.keys(value).length === 2 && typeof value["keyid"] === "string" && typeof value["sig"] === "string";
}

/** The proof of a record in a log of 2^53 records has 53 hashes. */
const MAX_PROOF = 64;

function isLog(value: Fields): value is Fields & LogLine {
  const { checkpoint, proof, record } = value;
  if (Object.keys(value).length !== 3 || typeof checkpoint !== "string" || typeof record !== "string") return false;
  return Array.isArray(proof) && proof.length <= MAX_PROOF && proof.every((hash) => typeof hash === "string");
}

function isArtifact(value: Fields): value is Fields & ArtifactLine {
  const { k, s, t } = value;
  return Object.keys(value).length === 3 && typeof k === "string" && typeof s === "string" && typeof t === "string";
}

function entryOf(value: readonly unknown[]): BundleLine | undefined {
  const [seq, type, command, at, tookMs, data, more = {}] = value;
  if (value.length < 6 || value.length > 7 || !isSeq(seq) || !isTime(at) || !isObject(more)) return undefined;
  if (!isText(type) || !isText(command) || !isText(data)) return undefined;
  if (tookMs !== null && typeof tookMs !== "number") return undefined;
  const { execution, startedAt, worker, ...rest } = more;
  if (Object.keys(rest).length > 0 || (value.length === 7 && Object.keys(more).length === 0)) return undefined;
  if (execution !== undefined && !isSeq(execution)) return undefined;
  if (startedAt !== undefined && !isTime(startedAt)) return undefined;
  if (worker !== undefined && !isText(worker)) return undefined;
  const ran = { execution, startedAt, worker, ...(tookMs !== null && { tookMs }) };
  return { line: "entry", entry: { seq, type: type as EntryType, command, at, data, ...ran } };
}

const PAGE = 500;

/** The entries of the section whose first entry is at this place. The check of the section has read its lines before. */
export function bundledJournal(input: BundleInput, first: Omit<Placed<unknown>, "value">): JournalSource<Entry> {
  return {
    async *pages() {
      let chain = CHAIN_START;
      let page: Entry[] = [];
      for await (const { value, number } of readLines(input, first.offset, first.number)) {
        const { parsed } = parseLine(value, number);
        if (parsed.line !== "entry") break;
        const { type, command, data } = parsed.entry;
        chain = chainAfter(chain, type, command, data);
        page.push({ ...parsed.entry, mark: markOf(chain) });
        if (page.length < PAGE) continue;
        yield page;
        page = [];
      }
      if (page.length > 0) yield page;
    },
  };
}
