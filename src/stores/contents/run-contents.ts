// Run contents: the texts that payloads of a run share, and the large ones, stored beside the rows that hold references to them.
//
// run-contents.C1. Everything above the stores sees payloads byte for byte. A row holds the text of its payload, or a reference from which
//   the same text is assembled (reference.R1).
// run-contents.C2. A content belongs to one run, is never changed, and is deleted with the run. Its key is the SHA-256 of its text, cut to
//   192 bits; so a content that exists is inserted again without effect, and damage is noticed when it is read.
// run-contents.C3. Nothing is read before a write: this process remembers which parts of a run's payloads are in its contents. What it has
//   forgotten, or never knew, is stored once more. It remembers only what is committed, or what its own transaction writes.
// run-contents.C4. A payload of some kilobytes stays in its row until a part of it comes a second time: most runs repeat nothing, and pay
//   for no second row. A large payload leaves its row at once.
// run-contents.C5. With a codec, a content begins with a salt that depends on a random secret and its run: its key, which is not encrypted, then tells
//   nothing about its text, nor that another run has the same.
// run-contents.C6. A content that is missing or damaged makes the payload unreadable (payload-cipher.Y1): no statement fails.

import { RepriseError, unreadableReason, unreadableText, type Random } from "../../base/index.ts";
import type { RunNumber } from "../../kernel/index.ts";
import { ContentBatch, type KnownParts, type LastPayload, type RunParts } from "./content-batch.ts";
import type { OutsideContents } from "./outside-contents.ts";
import { cutText, keyOfText, partKey, shortestPart } from "./parts.ts";
import { isReference, parseReference } from "./reference.ts";

const SALT_MARK = "\u0003";
const SALT_LENGTH = 22;
const SECRET_BYTES = 32;

/** Parts that are remembered, of all runs; about 200 bytes each. */
const MOST_KNOWN = 50_000;
/** Characters of the last payloads of runs; one may be longer. */
const MOST_LAST = 4_000_000;
/** Characters of contents that are kept in memory. */
const MOST_CACHED = 8_000_000;

export class Contents implements KnownParts {
  readonly #random: Random;
  /** Of this process: the same text of a run has the same salt, so that a transaction that is repeated has the same contents. */
  #secret: string | undefined;
  /** Where large contents are; undefined: in the rows of the store. */
  outside: OutsideContents | undefined;
  readonly isSalted: boolean;
  /** The run that was used last is at the end. */
  readonly #runs = new Map<RunNumber, RunParts>();
  #known = 0;
  #lastLength = 0;
  readonly #cache = new Map<string, string>();
  #cached = 0;

  constructor(random: Random, isSalted: boolean) {
    this.#random = random;
    this.isSalted = isSalted;
  }

  /** The contents of one transaction. */
  begin(): ContentBatch {
    return new ContentBatch(this);
  }

  /** For a copy that replaces what a run has: it shares nothing with it. */
  beginApart(): ContentBatch {
    return new Contents(this.#random, this.isSalted).begin();
  }

  /** When history breaks: what was stored may be gone. */
  clear(): void {
    this.#runs.clear();
    this.#known = 0;
    this.#lastLength = 0;
    this.#cache.clear();
    this.#cached = 0;
  }

  forget(run: RunNumber): void {
    const known = this.#runs.get(run);
    if (known === undefined) return;
    this.#keepLast(known, undefined);
    this.#runs.delete(run);
    this.#known -= known.parts.size;
  }

  saltOf(run: RunNumber, text: string): string {
    this.#secret ??= Buffer.from(this.#random.bytes(SECRET_BYTES)).toString("base64url");
    return SALT_MARK + keyOfText(`${this.#secret}${run}/${text}`).slice(0, SALT_LENGTH);
  }

  partsOf(run: RunNumber): RunParts | undefined {
    return this.#runs.get(run);
  }

  /** run-contents.C3 */
  remember(run: RunNumber, { parts, repeats, last }: RunParts): void {
    let known = this.#runs.get(run);
    if (known === undefined) known = { repeats: false, parts: new Map(), last: undefined };
    else this.#runs.delete(run);
    this.#runs.set(run, known);
    known.repeats ||= repeats;
    if (last !== undefined) this.#keepLast(known, last);
    const before = known.parts.size;
    for (const [part, place] of parts) known.parts.set(part, place);
    this.#known += known.parts.size - before;
    for (const oldest of this.#runs.keys()) {
      if (this.#known <= MOST_KNOWN) break;
      this.forget(oldest);
    }
  }

  #keepLast(known: RunParts, last: LastPayload | undefined): void {
    this.#lastLength += (last?.text.length ?? 0) - (known.last?.text.length ?? 0);
    known.last = last;
    if (this.#lastLength <= MOST_LAST) return;
    for (const other of this.#runs.values()) {
      if (this.#lastLength <= MOST_LAST) break;
      if (other !== known && other.last !== undefined) this.#keepLast(other, undefined);
    }
  }

  // ── reading ──

  cached(run: RunNumber, content: string): string | undefined {
    return this.#cache.get(`${run}/${content}`);
  }

  /**
   * Checks a content that was read, and keeps it. Returns its text without the salt, or a text that says why it cannot be read.
   * `stored` undefined: there is no such content.
   */
  accept(run: RunNumber, content: string, stored: string | undefined, where = "the store"): string {
    if (stored === undefined) return unreadableText(missing(run, content, where));
    if (unreadableReason(stored) !== undefined) return stored;
    if (keyOfText(stored) !== content) return unreadableText(damaged(run, content, where));
    const text = stored.startsWith(SALT_MARK) ? stored.slice(SALT_MARK.length + SALT_LENGTH) : stored;
    const name = `${run}/${content}`;
    if (!this.#cache.has(name)) {
      this.#keep(name, text);
      // A process that takes over a run reads it first: it then shares what the other process stored.
      if (!isReference(text)) this.#learn(run, content, text);
    }
    return text;
  }

  #keep(name: string, text: string): void {
    this.#cache.set(name, text);
    this.#cached += text.length;
    for (const [oldest, { length }] of this.#cache) {
      if (this.#cached <= MOST_CACHED) break;
      this.#cache.delete(oldest);
      this.#cached -= length;
    }
  }

  #learn(run: RunNumber, content: string, text: string): void {
    const parts: RunParts["parts"] = new Map();
    let from = 0;
    for (const end of cutText(text, shortestPart(0))) {
      const length = end - from;
      const key = partKey(text, from, end);
      if (key !== "") parts.set(key, { content, size: text.length, from, length });
      from = end;
    }
    this.remember(run, { repeats: true, parts, last: undefined });
  }
}

/**
 * run-contents.C1. `load` returns the text of a content as `accept` does; undefined: it is not there yet, and so is the result. Every content
 * is asked for, so that all of them can be fetched together.
 */
export function assemble(
  text: string,
  load: (run: RunNumber, content: string) => string | undefined,
): string | undefined {
  if (!isReference(text)) return text;
  const reference = parseReference(text);
  if (reference === undefined) return unreadableText(new RepriseError("PAYLOAD_DAMAGED", DAMAGED_REFERENCE));
  let whole: string | undefined = "";
  let unreadable: string | undefined;
  for (const piece of reference.pieces) {
    if (typeof piece !== "string" && piece.length === 1) {
      if (whole !== undefined) whole += piece[0];
      continue;
    }
    const [content, from, length] = typeof piece === "string" ? [piece] : piece;
    const loaded = load(reference.run, content);
    const found: string | undefined = loaded === undefined ? undefined : assemble(loaded, load);
    if (found === undefined) whole = undefined;
    else if (unreadableReason(found) !== undefined) unreadable ??= found;
    else if (whole !== undefined) whole += from === undefined ? found : found.slice(from, from + length!);
  }
  return whole === undefined ? undefined : (unreadable ?? whole);
}

const DAMAGED_REFERENCE =
  "A row of the store should hold a list of contents, and holds something else. Run `reprise doctor`, and restore the store from a backup.";

function missing(run: RunNumber, content: string, where: string): RepriseError {
  return new RepriseError(
    "PAYLOAD_MISSING",
    `The content ${content} of run number ${run} is not in ${where}. Restore ${where} from a backup, then run \`reprise doctor\`.`,
    { details: { run, content, where } },
  );
}

function damaged(run: RunNumber, content: string, where: string): RepriseError {
  return new RepriseError(
    "PAYLOAD_DAMAGED",
    `The content ${content} of run number ${run} in ${where} is damaged: its text has another digest. Restore ${where} from a backup, then run \`reprise doctor\`.`,
    { details: { run, content, where } },
  );
}
