// JSON depth: bounds the nesting of a text before it is parsed. A parser that has already built 8 MiB of brackets is too late.

import { RepriseError } from "../base/index.ts";
import { limitExceeded } from "./limits.ts";

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** The deepest nesting of lists and objects in JSON text; linear, and needs no memory. */
export function jsonDepth(bytes: Uint8Array): number {
  let [depth, deepest, inText] = [0, 0, false];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (inText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) deepest = Math.max(deepest, (depth += 1));
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
  }
  return deepest;
}

export function checkDepth(bytes: Uint8Array, depth: number): void {
  const deepest = jsonDepth(bytes);
  if (deepest > depth) throw limitExceeded("depth", 413, `The JSON is nested ${deepest} levels deep.`);
}

/** The value of a JSON body. */
export function parseJson(bytes: Uint8Array, depth: number): unknown {
  checkDepth(bytes, depth);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
  } catch (cause) {
    throw new RepriseError("BAD_FORMAT", "The body is not JSON in UTF-8.", { cause });
  }
}
