// Member texts: the members of an entry's data as texts, cut out of the canonical text without decoding it.
//
// member-texts.T1. The text of a value inside canonical text is the canonical text of that value (codec.C1). So its key needs
//   neither a decode nor an encode.
// member-texts.T2. A journal may come from another party. A text that is not an object with distinct, unescaped keys is refused.

import { RepriseError } from "../base/index.ts";

export type MemberTexts = ReadonlyMap<string, string>;

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_LIST = 91;
const BACKSLASH = 92;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** The texts of the members of an object, by key. */
export function memberTexts(text: string): MemberTexts {
  const members = new Map<string, string>();
  if (text === "{}") return members;
  if (text.charCodeAt(0) !== OPEN_OBJECT) throw notCanonical(text);
  for (let at = 1; ;) {
    const keyEnd = text.charCodeAt(at) === QUOTE ? text.indexOf('"', at + 1) : -1;
    if (keyEnd < 0 || text.charCodeAt(keyEnd + 1) !== COLON) throw notCanonical(text);
    const key = text.slice(at + 1, keyEnd);
    // member-texts.T2
    if (key.includes("\\") || members.has(key)) throw notCanonical(text);
    const end = endOfValue(text, keyEnd + 2);
    members.set(key, text.slice(keyEnd + 2, end));
    const next = text.charCodeAt(end);
    if (next === CLOSE_OBJECT && end + 1 === text.length) return members;
    if (next !== COMMA) throw notCanonical(text);
    at = end + 1;
  }
}

/** The texts of the items of a list. */
export function itemTexts(text: string): readonly string[] {
  const items: string[] = [];
  if (text === "[]") return items;
  if (text.charCodeAt(0) !== OPEN_LIST) throw notCanonical(text);
  for (let at = 1; ;) {
    const end = endOfValue(text, at);
    items.push(text.slice(at, end));
    const next = text.charCodeAt(end);
    if (next === CLOSE_LIST && end + 1 === text.length) return items;
    if (next !== COMMA) throw notCanonical(text);
    at = end + 1;
  }
}

/** The position after the value that starts at `from`. */
function endOfValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        if (depth === 0) return at + 1;
        break;
      case OPEN_OBJECT:
      case OPEN_LIST:
        depth += 1;
        break;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        // A number, true, false or null ends before the bracket of the object that it is in.
        if (depth === 0 && at > from) return at;
        depth -= 1;
        if (depth < 0) throw notCanonical(text);
        if (depth === 0) return at + 1;
        break;
      case COMMA:
        if (depth > 0) break;
        if (at === from) throw notCanonical(text);
        return at;
      default:
    }
  }
  throw notCanonical(text);
}

/** The position of the quote that ends the string starting at `from`. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
  throw notCanonical(text);
}

const SHOWN = 60;

function notCanonical(text: string): RepriseError {
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return new RepriseError(
    "STORE_CORRUPT",
    `Expected the data of an entry as canonical JSON, got ${shown}. Run \`reprise doctor\` on the store that it comes from.`,
  );
}
