// Content batch: what one transaction adds to the contents (run-contents.ts).

import type { RunNumber } from "../../kernel/index.ts";
import { cutText, keyOfText, partKey, shortestPart, SHORTEST_CONTENT } from "./parts.ts";
import { formatReference, groupPieces, type Piece } from "./reference.ts";

/** A payload shorter than this is stored as it is. */
export const SMALLEST_SHARED = 4_096;
/** From this length on, a payload, or a new piece of one, is large. */
export const LARGE_FROM = 65_536;
/** Characters of one content. */
const LONGEST_CONTENT = 1_000_000;

/** How a table uses contents: `shared` from a few kilobytes on (run-contents.C4), `large` only for large payloads. */
export type ContentUse = "shared" | "large";

export interface NewContent {
  readonly run: RunNumber;
  readonly content: string;
  /** As it is stored, with its salt. */
  readonly text: string;
}

export interface PartPlace {
  readonly content: string;
  readonly size: number;
  readonly from: number;
  readonly length: number;
}

/** A payload with its parts, so that the next one that begins alike is not hashed again. */
export interface LastPayload {
  readonly text: string;
  readonly ends: readonly number[];
  readonly keys: readonly string[];
}

/** What is known about the payloads of a run. */
export interface RunParts {
  /** run-contents.C4. A part came a second time. */
  repeats: boolean;
  /** By key; undefined: the part was seen, and is not stored. */
  readonly parts: Map<string, PartPlace | undefined>;
  last: LastPayload | undefined;
}

/** What a batch asks and tells the contents of the store (run-contents.ts). */
export interface KnownParts {
  /** run-contents.C5 */
  readonly isSalted: boolean;
  saltOf(run: RunNumber, text: string): string;
  partsOf(run: RunNumber): RunParts | undefined;
  remember(run: RunNumber, parts: RunParts): void;
}

/** run-contents.C3. Remembers what it adds; other transactions learn of it when it is committed. */
export class ContentBatch {
  readonly added: NewContent[] = [];
  readonly #contents: KnownParts;
  readonly #runs = new Map<RunNumber, RunParts>();

  constructor(contents: KnownParts) {
    this.#contents = contents;
  }

  committed(): void {
    for (const [run, parts] of this.#runs) this.#contents.remember(run, parts);
  }

  /** The text that a row holds for a payload; what it refers to is in `added`, or stored already. */
  reduce(run: RunNumber, text: string, use: ContentUse): string {
    const isLarge = text.length >= LARGE_FROM;
    if (!isLarge && (use === "large" || text.length < SMALLEST_SHARED)) return text;
    const mine = this.#partsOf(run);
    const known = this.#contents.partsOf(run);
    const ends = cutText(text, shortestPart(text.length));
    const keys = keysOf(text, ends, mine.last ?? known?.last);
    const isKnown = (key: string): boolean => key !== "" && (mine.parts.has(key) || known?.parts.has(key) === true);
    const repeats = isLarge || mine.repeats || known?.repeats === true || keys.some(isKnown);
    mine.last = { text, ends, keys };
    if (!repeats) {
      for (const key of keys) if (key !== "") mine.parts.set(key, undefined);
      return text;
    }
    mine.repeats ||= !isLarge;
    const pieces = this.#piecesOf(run, text, ends, keys, known?.parts);
    const grouped = groupPieces(pieces, (node) => this.#addNode(run, formatReference({ run, pieces: node }), known));
    return formatReference({ run, pieces: grouped });
  }

  #partsOf(run: RunNumber): RunParts {
    let found = this.#runs.get(run);
    if (found === undefined) this.#runs.set(run, (found = { repeats: false, parts: new Map(), last: undefined }));
    return found;
  }

  #piecesOf(
    run: RunNumber,
    text: string,
    ends: readonly number[],
    keys: readonly string[],
    known: RunParts["parts"] | undefined,
  ): readonly Piece[] {
    const { parts } = this.#runs.get(run)!;
    const places: PartPlace[] = [];
    const pieces: Piece[] = [];
    /** Pieces of stored contents that follow each other are one. */
    const flushPlaces = (): void => {
      for (const { content, size, from, length } of joined(places.splice(0)))
        pieces.push(length === size ? content : [content, from, length]);
    };
    let first = 0;
    const flushNew = (upTo: number): void => {
      const start = first === 0 ? 0 : ends[first - 1]!;
      const end = upTo === 0 ? 0 : ends[upTo - 1]!;
      if (end === start) return;
      flushPlaces();
      if (end - start < SHORTEST_CONTENT) return void pieces.push([text.slice(start, end)]);
      for (const [a, b] of portionsOf(ends, first, upTo)) {
        const from = a === 0 ? 0 : ends[a - 1]!;
        const whole = text.slice(from, ends[b - 1]);
        const content = this.#add(run, this.#contents.isSalted ? this.#contents.saltOf(run, whole) + whole : whole);
        for (let at = a; at < b; at += 1) {
          const begin = at === 0 ? 0 : ends[at - 1]!;
          const place = { content, size: whole.length, from: begin - from, length: ends[at]! - begin };
          if (keys[at] !== "") parts.set(keys[at]!, place);
        }
        pieces.push(content);
      }
    };
    for (const [at, key] of keys.entries()) {
      const place = key === "" ? undefined : (parts.get(key) ?? known?.get(key));
      if (place === undefined) continue;
      flushNew(at);
      places.push(place);
      first = at + 1;
    }
    flushNew(ends.length);
    flushPlaces();
    return pieces;
  }

  #addNode(run: RunNumber, text: string, known: RunParts | undefined): string {
    const { parts } = this.#runs.get(run)!;
    const key = keyOfText(text);
    if (parts.has(key) || known?.parts.has(key) === true) return key;
    parts.set(key, { content: key, size: text.length, from: 0, length: text.length });
    return this.#add(run, text);
  }

  #add(run: RunNumber, text: string): string {
    const content = keyOfText(text);
    this.added.push({ run, content, text });
    return content;
  }
}

function* joined(places: readonly PartPlace[]): Iterable<PartPlace> {
  let last: PartPlace | undefined;
  for (const place of places) {
    if (last !== undefined && last.content === place.content && last.from + last.length === place.from)
      last = { ...last, length: last.length + place.length };
    else {
      if (last !== undefined) yield last;
      last = place;
    }
  }
  if (last !== undefined) yield last;
}

/** The keys of all parts. Those that are equal in the last payload, in the same order, are not hashed again. */
function keysOf(text: string, ends: readonly number[], last: LastPayload | undefined): readonly string[] {
  const keys: string[] = [];
  let from = 0;
  for (const [at, end] of ends.entries()) {
    const before = last?.ends[at];
    const start = at === 0 ? 0 : last?.ends[at - 1];
    const isSame =
      before !== undefined &&
      before - start! === end - from &&
      last!.text.slice(start, before) === text.slice(from, end);
    keys.push(isSame ? last!.keys[at]! : partKey(text, from, end));
    from = end;
  }
  return keys;
}

/** Ranges of parts, each of one content. */
function* portionsOf(ends: readonly number[], first: number, upTo: number): Iterable<readonly [number, number]> {
  let begin = first;
  let start = first === 0 ? 0 : ends[first - 1]!;
  for (let at = first; at < upTo; at += 1) {
    if (ends[at]! - start <= LONGEST_CONTENT || at === begin) continue;
    yield [begin, at];
    begin = at;
    start = ends[at - 1]!;
  }
  yield [begin, upTo];
}
