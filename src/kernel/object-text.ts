// Object text: the positions of the members in the canonical text of an object, so that one member can be replaced without
// encoding the others.
//
// object-text.M1. The result is, byte for byte, the text of `encode` for the whole object (codec.C1).
// object-text.M2. The positions are cached with their state, and computed again if they are missing.

import { decode, encode, invariant, MAX_PAYLOAD_BYTES } from "../base/index.ts";

/** The canonical text of an object, and its members in key order. */
export interface ObjectText {
  readonly text: string;
  /** Undefined: the text escapes a key, or is not that of a plain object. */
  readonly members: Members | undefined;
}

interface Members {
  readonly keys: readonly string[];
  /** The length of `"key":value`, in characters. */
  readonly lengths: readonly number[];
}

/** The text of the object with `changes` merged into it; `known` may belong to another text. */
export function mergeMembers(
  text: string,
  changes: Readonly<Record<string, unknown>>,
  known: ObjectText | undefined,
): ObjectText {
  const members = known?.text === text ? known.members : membersOf(text);
  const names = Object.keys(changes).sort();
  if (members !== undefined && !names.some(isEscaped)) {
    const after = splice(text, members, names, changes);
    // Only encoding the whole object tells whether it is too large.
    if (after.text.length * 3 <= MAX_PAYLOAD_BYTES) return after;
  }
  const whole = encode({ ...(decode(text) as object), ...changes });
  return { text: whole, members: membersOf(whole) };
}

function splice(
  text: string,
  before: Members,
  names: readonly string[],
  changes: Readonly<Record<string, unknown>>,
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
    // Without the comma after the last one.
    if (at > from) pieces.push(text.slice(from, at - 1));
  };
  for (const name of names) {
    keepUpTo(name);
    if (before.keys[index] === name) at += before.lengths[index++]! + 1;
    const member = encode({ [name]: changes[name] }).slice(1, -1);
    keys.push(name);
    lengths.push(member.length);
    pieces.push(member);
  }
  keepUpTo(undefined);
  invariant(at === text.length || before.keys.length === 0, "object-text.M1: the members cover the text");
  return { text: `{${pieces.join(",")}}`, members: { keys, lengths } };
}

function membersOf(text: string): Members | undefined {
  const value = decode(text) as Readonly<Record<string, unknown>>;
  const keys = Object.keys(value).sort();
  const lengths = keys.map((key) => encode({ [key]: value[key] }).length - 2);
  const length = lengths.reduce((sum, each) => sum + each, 2 + Math.max(0, keys.length - 1));
  return length !== text.length || keys.some(isEscaped) ? undefined : { keys, lengths };
}

/** codec.C2. A key made only of `$` has one more `$` in the text, and is sorted by that. */
function isEscaped(key: string): boolean {
  return /^\$+$/.test(key);
}
