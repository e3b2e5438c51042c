// Check bundle: whether the lines of a bundle agree with each other (level 0), and who signed them (level 1).
//
// check-bundle.C1. Nothing in a line is believed. Everything that can be derived is derived again and compared: keys, chain, roots,
//   claim, run record, digests of parts. What remains, such as the runtimes, is covered by the signature alone.
// check-bundle.C2. Contradicting lines are damage. Lines that end too early, or entries that are missing, are incomplete.
// check-bundle.C3. Of the lines of a section only one is kept. What a caller wants again is read again.
// check-bundle.C4. A bundle without payloads has no chain and no steps to derive: its leaves and its claim are compared by digest.
// check-bundle.C5. Records of a log come last, at most MAX_LOG_LINES of them. They are handed on unchecked: the room of logs is above
//   this one (federation/sync/log-proof.ts).

import { artifactKey, canonicalJson, mediaType, RepriseError, sha256Hex } from "../base/index.ts";
import { CHAIN_START, chainAfter, hasEnded, type Entry } from "../kernel/index.ts";
import { endOf, runRecordText, type BundledRun } from "./bundled-run.ts";
import {
  bundledJournal,
  headerLine,
  PARTS,
  readBundle,
  type ArtifactLine,
  type BundleForm,
  type BundleInput,
  type BundleLine,
  type LogLine,
  type Part,
  type Placed,
} from "./bundle-lines.ts";
import { ClaimReader, deriveClaim, type Claim } from "./claim.ts";
import { checkSignature, STATEMENT_TYPE, type Envelope, type SignatureCheck } from "./dsse.ts";
import type { JournalSource } from "./journal-source.ts";
import { journalLine } from "./journal-tree.ts";
import { leafHash, MerkleTree } from "./merkle.ts";
import type { VerifyingKey } from "./signing-key.ts";
import { parseStatement, statementText, type Predicate } from "./statement.ts";

/** What is wrong with a section, at the first line that shows it (check-bundle.C2). */
export interface BundleProblem {
  readonly kind: "damaged" | "incomplete";
  /** The first line that it concerns; counts from 1. */
  readonly line: number;
  readonly message: string;
}

/** The check of one section. Everything but `run` and `form` counts only without a problem. */
export interface BundleReport {
  readonly run: BundledRun;
  readonly form: BundleForm;
  readonly problem: BundleProblem | undefined;
  readonly signature: SignatureCheck;
  readonly statement: Predicate | undefined;
  /** The text of the claim. */
  readonly claim: string;
  readonly entries: number;
  /** The chain after the last entry; undefined without payloads. */
  readonly chain: string | undefined;
  /** Undefined without payloads. */
  readonly journal: JournalSource<Entry> | undefined;
  /** The keys of the statement and of the run record, as a log names them. */
  readonly keys: { readonly statement: string; readonly record: string };
  /** The records of the site's log, in order. What they prove is for who knows logs to check (check-bundle.C5). */
  readonly log: readonly (LogLine & { readonly line: number })[];
  /** The texts that no journal holds, in order. Empty without payloads. */
  parts(): AsyncIterable<{ readonly part: Part; readonly text: string }>;
}

/** Checks every section of a bundle, in order. Stops after the first damaged one: the reader cannot separate what follows. */
export async function* checkBundle(input: BundleInput, keys: readonly VerifyingKey[]): AsyncGenerator<BundleReport> {
  let section: Section | undefined;
  let line = 0;
  try {
    for await (const placed of readBundle(input)) {
      line = placed.number;
      if (placed.value.line === "header") {
        if (section !== undefined) yield await section.report(input, keys);
        section = new Section(placed.value.header.run, placed.value.header.form, line);
        continue;
      }
      if (section === undefined) throw damagedAt(line, "stands before the first header");
      section.add(placed);
    }
  } catch (error) {
    if (section === undefined || !(error instanceof RepriseError) || error.code !== "BUNDLE_DAMAGED") throw error;
    yield await section.report(input, keys, error);
    return;
  }
  if (section === undefined) throw damagedAt(1, "is missing: the file is empty");
  yield await section.report(input, keys);
}

function damagedAt(line: number, why: string): RepriseError {
  return new RepriseError("BUNDLE_DAMAGED", `Line ${line} of the bundle ${why}.`, { details: { line } });
}

class Section {
  readonly #run: BundledRun;
  readonly #form: BundleForm;
  readonly #tree = new MerkleTree();
  readonly #parts: Partial<Record<Part, PartTree>> = {};
  readonly #artifacts: ArtifactLine[] = [];
  /** The lines of the header, the envelope, the claim and the run record follow each other. */
  readonly #line: number;
  #last: number;
  /** Undefined: the entries are no journal. */
  #claim: ClaimReader | undefined;
  #envelope: Envelope | undefined;
  #chain = CHAIN_START;
  #first: Place | undefined;
  #firstPart: Place | undefined;
  #problem: BundleProblem | undefined;
  #part = 0;
  readonly #log: (LogLine & { readonly line: number })[] = [];

  constructor(run: BundledRun, form: BundleForm, line: number) {
    this.#run = run;
    this.#form = form;
    this.#line = this.#last = line;
    this.#claim = new ClaimReader(run);
  }

  /** bundle-lines.L1. In order, or it is damage. */
  add({ value, number, offset }: Placed<BundleLine>): void {
    this.#last = number;
    if (value.line === "envelope") {
      if (this.#envelope !== undefined) throw damagedAt(number, "is a second envelope");
      if (this.#tree.size > 0) throw damagedAt(number, "is not in its place");
      this.#envelope = value.envelope;
    } else if (value.line === "artifact") {
      if (this.#envelope === undefined || this.#artifacts.length === 2 || this.#tree.size > 0)
        throw damagedAt(number, "is not in its place");
      this.#artifacts.push(value.artifact);
    } else if (value.line === "entry" || value.line === "leaf") this.#addEntry(value, { number, offset });
    else if (value.line === "part") {
      const rank = PARTS.indexOf(value.part);
      if (this.#form !== "full" || this.#artifacts.length < 2 || rank < this.#part)
        throw damagedAt(number, "is not in its place");
      if (this.#log.length > 0) throw damagedAt(number, "is not in its place");
      this.#part = rank;
      this.#firstPart ??= { number, offset };
      (this.#parts[value.part] ??= { line: number, tree: new MerkleTree() }).tree.push(leafHash(value.text));
    } else if (value.line === "log") {
      if (this.#artifacts.length < 2 || this.#log.length === MAX_LOG_LINES)
        throw damagedAt(number, "is not in its place");
      this.#log.push({ ...value.log, line: number });
    }
  }

  #addEntry(value: BundleLine & { line: "entry" | "leaf" }, place: Place): void {
    const { number } = place;
    const isWhole = value.line === "entry";
    const seq = isWhole ? value.entry.seq : value.seq;
    const isLate = this.#firstPart !== undefined || this.#log.length > 0;
    if (this.#artifacts.length < 2 || isLate || isWhole !== (this.#form === "full"))
      throw damagedAt(number, "is not in its place");
    const expected = this.#tree.size + 1;
    if (seq > expected) this.#note("incomplete", number, `entry ${expected} is missing; found ${seq}`);
    if (seq < expected) this.#note("damaged", number, `entry ${seq} is not in its place; expected ${expected}`);
    this.#first ??= place;
    this.#tree.push(leafHash(isWhole ? journalLine(value.entry) : value.text));
    if (!isWhole) return;
    this.#chain = chainAfter(this.#chain, value.entry.type, value.entry.command, value.entry.data);
    try {
      this.#claim?.add(value.entry);
    } catch {
      this.#claim = undefined;
    }
  }

  #note(kind: BundleProblem["kind"], line: number, message: string): void {
    this.#problem ??= { kind, line, message };
  }

  async report(input: BundleInput, keys: readonly VerifyingKey[], damage?: RepriseError): Promise<BundleReport> {
    if (damage !== undefined) {
      const line = Number(damage.details?.["line"]);
      this.#note(/cut off/.test(damage.message) ? "incomplete" : "damaged", line, damage.message);
    }
    const text = this.#envelope === undefined ? undefined : payloadOf(this.#envelope);
    const statement = text === undefined ? undefined : parseStatement(text);
    const journal = this.#form === "full" && this.#first ? bundledJournal(input, this.#first) : undefined;
    if (this.#problem === undefined) await this.#check(text, statement?.predicate, journal);
    const [claim] = this.#artifacts;
    return {
      run: this.#run,
      form: this.#form,
      problem: this.#problem,
      signature:
        this.#envelope === undefined ? { status: "unsigned" } : checkSignature(this.#envelope, text ?? "", keys),
      statement: statement?.predicate,
      claim: claim?.s ?? "",
      entries: this.#tree.size,
      chain: journal === undefined ? undefined : this.#chain,
      journal,
      keys: { statement: artifactKey(STATEMENT_TYPE, text ?? ""), record: this.#artifacts[1]?.k ?? "" },
      log: this.#log,
      parts: () => readParts(input, this.#firstPart),
    };
  }

  /** check-bundle.C1. Stops at the first problem. */
  async #check(
    text: string | undefined,
    said: Predicate | undefined,
    journal: JournalSource | undefined,
  ): Promise<void> {
    const [claim, record] = this.#artifacts;
    const [envelopeAt, claimAt, recordAt, firstAt] = [1, 2, 3, 4].map((after) => this.#line + after) as Lines;
    if (this.#envelope === undefined || claim === undefined || record === undefined)
      return this.#note("incomplete", this.#last, "the statement, the claim or the run record is missing after it");
    if (text === undefined || said === undefined)
      return this.#note("damaged", envelopeAt, "the envelope holds no statement of a run");
    const { size } = this.#tree;
    if (size < said.journal.size)
      return this.#note("incomplete", this.#last, `it has ${size} of ${said.journal.size} entries`);
    const differs: Compare = (line, what, actual, expected) => {
      if (actual === expected) return;
      const found = actual === undefined ? "missing" : String(actual);
      const signed = expected === undefined ? "says nothing of it" : `says ${String(expected)}`;
      this.#note("damaged", line, `${what} is ${found}; the statement ${signed}`);
    };
    this.#checkRow(said, differs);
    const entries = `of the entries in lines ${firstAt} to ${firstAt + size - 1}`;
    differs(firstAt, `the number ${entries}`, size, said.journal.size);
    if (journal !== undefined) differs(firstAt, `the chain ${entries}`, this.#chain, said.chain);
    differs(firstAt, `the root ${entries}`, this.#tree.root(), said.journal.root);
    this.#checkArtifact(claim, "claim", said.claim, claimAt);
    this.#checkClaimedRow(claim.s, claimAt);
    this.#checkArtifact(record, "run", artifactKey(mediaType("run"), this.#recordText(record.s, said)), recordAt);
    for (const part of this.#form === "full" ? PARTS : []) {
      const { line, tree } = this.#parts[part] ?? { line: this.#last, tree: new MerkleTree() };
      const { root, size: count } = said[part] ?? { root: tree.root(), size: 0 };
      if (tree.size < count) this.#note("incomplete", this.#last, `it has ${tree.size} of ${count} ${part}`);
      differs(line, `the number of ${part}`, tree.size, count);
      differs(line, `the root of the ${part}`, tree.root(), root);
    }
    if (this.#problem !== undefined || journal === undefined) return;
    // Of a retried run the journal is read again, so it comes last.
    const derived = await this.#deriveClaim(journal).catch(() => undefined);
    differs(firstAt, `the claim ${entries}`, derived?.key, said.claim);
    if (statementText(said, claim.s, derived?.output) !== text)
      this.#note("damaged", envelopeAt, "the subjects of the statement are not those of these lines");
  }

  /** The row in the header, and what the statement repeats of it. */
  #checkRow(said: Predicate, differs: Compare): void {
    const { id, generation, parent, tags, status } = this.#run;
    const open = hasEnded(status) ? undefined : status;
    differs(this.#line, "the row", rowDigest(this.#form, this.#run, said.row), said.row);
    differs(this.#line, "the run", id, said.run);
    differs(this.#line, "the generation", generation, said.generation);
    differs(this.#line, "the parent", textOf(parent), textOf(said.parent));
    differs(this.#line, "the list of tags", textOf(tags), textOf(said.tags ?? []));
    differs(this.#line, "the status", open, said.status);
    differs(this.#line, "the form", this.#form === "blind" ? true : undefined, said.blind);
  }

  /** The claim follows from the entries, and the row says the same of them: also where there are no payloads. */
  #checkClaimedRow(text: string, line: number): void {
    const { kind, definition, version, status } = this.#run;
    let claimed: Readonly<Record<string, unknown>> = {};
    try {
      claimed = Object(JSON.parse(text)) as typeof claimed;
    } catch {
      // It cannot be the claim then.
    }
    const isSame = claimed["kind"] === kind && claimed["name"] === definition && claimed["version"] === version;
    if (!isSame || claimed["end"] !== endOf(status))
      this.#note("damaged", line, "the claim is not of the run in the header");
  }

  /** The entries have been read already; those of a retried run are read again (claim.C4). */
  async #deriveClaim(journal: JournalSource): Promise<Claim | undefined> {
    return this.#claim && (this.#claim.finish() ?? deriveClaim(this.#run, journal));
  }

  #checkArtifact({ k, s, t }: ArtifactLine, name: "claim" | "run", expected: string, line: number): void {
    const key = artifactKey(mediaType(name), s);
    const isKnown = t === mediaType(name) && k === key && key === expected;
    if (!isKnown)
      this.#note("damaged", line, `the ${name === "run" ? "run record" : name} is not the one of these lines`);
  }

  /** The run record of these lines, with what only the one that is there says: its nonce, and whether the run was adopted. */
  #recordText(there: string, said: Predicate): string {
    let nonce = "";
    let isAdopted = false;
    try {
      const read = JSON.parse(there) as { readonly nonce?: unknown; readonly adopted?: unknown };
      nonce = String(read.nonce);
      isAdopted = read.adopted === true;
    } catch {
      // It cannot be the record then.
    }
    return runRecordText({ run: this.#run, head: said.journal.size, chain: said.chain, nonce, isAdopted });
  }
}

/** check-bundle.C5 */
const MAX_LOG_LINES = 1_000;

/** A site that leaves the payloads of a run out keeps the statement: its row is that of the form with payloads. */
function rowDigest(form: BundleForm, run: BundledRun, said: string | undefined): string {
  const full = sha256Hex(headerLine("full", run));
  return form === "hash-only" && said === full ? full : sha256Hex(headerLine(form, run));
}

type Place = Omit<Placed<unknown>, "value">;
type Comparable = string | number | boolean | undefined;
type Compare = (line: number, what: string, actual: Comparable, expected: Comparable) => void;
type Lines = [number, number, number, number];

/** The texts of a part, and the line of the first one. */
interface PartTree {
  readonly line: number;
  readonly tree: MerkleTree;
}

/** check-bundle.C3 */
async function* readParts(
  input: BundleInput,
  first: Place | undefined,
): AsyncGenerator<{ readonly part: Part; readonly text: string }> {
  if (first === undefined) return;
  for await (const { value } of readBundle(input, first.offset, first.number)) {
    if (value.line !== "part") return;
    yield { part: value.part, text: value.text };
  }
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : canonicalJson(value);
}

/** The text of the statement; undefined: it is none. */
function payloadOf({ payload, payloadType }: Envelope): string | undefined {
  const bytes = Buffer.from(payload, "base64");
  // Base64 with other bits behind its end decodes to the same bytes.
  if (payloadType !== STATEMENT_TYPE || bytes.toString("base64") !== payload) return undefined;
  const text = bytes.toString("utf8");
  // Bytes that are no UTF-8 would be read as U+FFFD, which has another signature.
  return Buffer.from(text).equals(bytes) ? text : undefined;
}
