// Blind: keys of values that cannot be guessed from the value alone.
//
// blind.B1. A plain digest of a small value, such as four digits, can be found by trying all of them. A blind key is an HMAC under the
//   salt of the run, so it says nothing without the salt. It equals no key of another run.
// blind.B2. Every place has a key of its own, derived from the salt: one value is shown by giving its text and that key, and nothing
//   else is shown with it.

import { createHmac } from "node:crypto";
import { invariant, valueKey } from "../base/index.ts";

/** The key of one field of a step: that of its text, or a blind one. */
export type KeyOf = (command: string, field: string, text: string) => string;

export const plainKey: KeyOf = (_command, _field, text) => valueKey(text);

export function blindKey(salt: Uint8Array): KeyOf {
  return (command, field, text) => blindText(salt, `${command}/${field}`, text);
}

/** The blind form of the data of entry `seq`. */
export function blindData(salt: Uint8Array, seq: number, data: string): string {
  return blindText(salt, String(seq), data);
}

/** blind.B2 */
export function placeKey(salt: Uint8Array, place: string): Buffer {
  invariant(salt.length >= 16, "blind.B1: a salt has 128 bits or more");
  return createHmac("sha256", salt).update(`reprise/blind/v1/${place}`).digest();
}

/** blind.B1 */
export function blindText(salt: Uint8Array, place: string, text: string): string {
  return createHmac("sha256", placeKey(salt, place)).update(text).digest("hex");
}
