// Member texts: where the members of an object stand in its canonical text, so that one of them can be written anew without
// the others.
//
// M1. The text made here is, byte for byte, that of `encode` for the whole object (C1).
// M2. What is known of a text goes on with the state it belongs to and is made again where it is not at hand.

import { decode, encode, MAX_PAYLOAD_BYTES } from "../base/index.ts";

/** The canonical text of an object, and its members in the order they stand there: by key. */
export interface ObjectText {
  readonly text: string;
  /** Undefined where the text does not say the keys as they are, or is that of something else than a plain object. */
  readonly members: Members | undefined;
}

interface Members {
  readonly keys: readonly string[];
  /** Of `"key":value`, in characters. */
  readonly lengths: readonly number[];
}

/** The text with `laid` over its object; `known` of that text or another. */
export function mergeMembers(
  text: string,
  laid: Readonly<Record<string, unknown>>,
  known: ObjectText | undefined,
): ObjectText {
  const members = known?.text === text ? known.members : membersOf(text);
  const names = Object.keys(laid).sort();
  if (members !== undefined && !names.some(isEscaped)) {
    const after = splice(text, members, names, laid);
    // Who writes all of it finds out whether it has become too large.
    if (after.text.length * 3 <= MAX_PAYLOAD_BYTES) return after;
  }
  const whole = encode({ ...(decode(text) as object), ...laid });
  return { text: whole, members: membersOf(whole) };
}

function splice(
  text: string,
  before: Members,
  names: readonly string[],
  laid: Readonly<Record<string, unknown>>,
): ObjectText {
  const keys: string[] = [];
  const lengths: number[] = [];
  const pieces: string[] = [];
  let index = 0;
  let at = 1;
  const keepUpTo = (name: string | undefined): void => {
    const from = at;
    for (; index < before.keys.length; index += 1) {
      const key = before.keys[index]!;
      if (name !== undefined && key >= name) break;
      keys.push(key);
      lengths.push(before.lengths[index]!);
      at += before.lengths[index]! + 1;
    }
    // Without the comma behind the last of them.
    if (at > from) pieces.push(text.slice(from, at - 1));
  };
  for (const name of names) {
    keepUpTo(name);
    if (before.keys[index] === name) at += before.lengths[index++]! + 1;
    const member = encode({ [name]: laid[name] }).slice(1, -1);
    keys.push(name);
    lengths.push(member.length);
    pieces.push(member);
  }
  keepUpTo(undefined);
  return { text: `{${pieces.join(",")}}`, members: { keys, lengths } };
}

function membersOf(text: string): Members | undefined {
  const value = decode(text) as Readonly<Record<string, unknown>>;
  const keys = Object.keys(value).sort();
  const lengths = keys.map((key) => encode({ [key]: value[key] }).length - 2);
  const length = lengths.reduce((sum, each) => sum + each, 2 + Math.max(0, keys.length - 1));
  return length !== text.length || keys.some(isEscaped) ? undefined : { keys, lengths };
}

/** Keys of nothing but `$` are written with one more, and sorted by that. */
function isEscaped(key: string): boolean {
  return /^\$+$/.test(key);
}
