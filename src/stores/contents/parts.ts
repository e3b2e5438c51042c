// Parts: cuts the text of a payload where equal pieces of two payloads are likely cut alike.
//
// parts.P1. A cut depends only on what is near it. So texts that begin alike have the same parts as far as they are alike, so has a list
//   with one more element, and a long string is a part of its own wherever it stands: as an answer, and then in a list of messages.
// parts.P2. Between long strings, a cut is after the end of an object in a list or in another object; where there is none for long, at a
//   fixed length. It never separates the two halves of a surrogate pair, which have no UTF-8.
//
// Nothing is parsed. What looks like a quote or a brace may be something else; then the cut is as good as any other.

import { hash } from "node:crypto";

/** A text has at most about this many parts. */
const MOST_PARTS = 2_048;
const SHORTEST = 512;
/** A shorter piece is not worth a reference. */
export const SHORTEST_CONTENT = 200;
const KEY_LENGTH = 32;
/** The longest part, in shortest ones. */
const LONGEST = 32;
const COMMA = 0x2c;
const END_OF_LIST = 0x5d;
const BACKSLASH = 0x5c;

/** The shortest part of a text. It grows in steps of four, so that a growing text is seldom cut in other places. */
export function shortestPart(length: number): number {
  let shortest = SHORTEST;
  while (length > shortest * MOST_PARTS) shortest *= 4;
  return shortest;
}

/** Where the parts of a text end. The structure around long strings has parts that are shorter. */
export function cutText(text: string, shortest: number): readonly number[] {
  const ends: number[] = [];
  let start = 0;
  let before = nextQuote(text, 0);
  while (before < text.length) {
    const quote = nextQuote(text, before + 1);
    if (quote - before > shortest) {
      cutObjects(text, start, before + 1, shortest, ends);
      cutEvenly(text, before + 1, quote, shortest * LONGEST, ends);
      start = quote;
    }
    before = quote;
  }
  cutObjects(text, start, text.length, shortest, ends);
  return ends;
}

/** The next quote that is not escaped, or the end of the text. */
function nextQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return text.length;
}

function cutObjects(text: string, from: number, upTo: number, shortest: number, ends: number[]): void {
  let brace = -1;
  for (let start = from; start < upTo;) {
    let end = upTo;
    if (upTo - start > shortest) {
      const limit = Math.min(upTo, start + shortest * LONGEST);
      // The brace that the search before has found may be far behind.
      if (brace < start + shortest - 1) brace = nextBrace(text, start + shortest - 1);
      end = brace < limit ? brace + 1 : limit;
    }
    start = whole(text, end);
    ends.push(start);
  }
}

/**
 * The next end of an object before a comma or the end of a list: one of two, by the characters before it. A list that lost its first
 * elements then soon has the same parts again.
 */
function nextBrace(text: string, from: number): number {
  for (let at = text.indexOf("}", from); at >= 0; at = text.indexOf("}", at + 1)) {
    const next = text.charCodeAt(at + 1);
    if ((next === COMMA || next === END_OF_LIST) && isChosen(text, at)) return at;
  }
  return Number.POSITIVE_INFINITY;
}

const BEFORE = 64;

function isChosen(text: string, at: number): boolean {
  let mix = 0;
  for (let back = Math.max(0, at - BEFORE); back < at; back += 1)
    mix = (Math.imul(mix, 31) + text.charCodeAt(back)) | 0;
  return ((mix >>> 9) & 1) === 0;
}

function cutEvenly(text: string, from: number, upTo: number, longest: number, ends: number[]): void {
  for (let start = from; start < upTo;) {
    start = upTo - start <= longest ? upTo : whole(text, start + longest);
    ends.push(start);
  }
}

/** parts.P2 */
function whole(text: string, end: number): number {
  const unit = text.charCodeAt(end - 1);
  return unit >= 0xd800 && unit <= 0xdbff && end < text.length ? end + 1 : end;
}

/** SHA-256, cut to 192 bits, in base64url. */
export function keyOfText(text: string): string {
  return hash("sha256", text, "base64url").slice(0, KEY_LENGTH);
}

/** "" for a part that is too short to be found again. */
export function partKey(text: string, from: number, end: number): string {
  return end - from < SHORTEST_CONTENT ? "" : keyOfText(text.slice(from, end));
}
