// Message lines: the lines of an input, each with a bounded length.
//
// message-lines.L1. A line that is longer than a message may be is dropped as it comes, without being kept, and given as undefined.

import { StringDecoder } from "node:string_decoder";

/** As much as the largest body of the HTTP API. */
export const MAX_LINE = 8 * 1024 * 1024;

export async function* linesOf(
  input: AsyncIterable<Uint8Array | string>,
  maxLength = MAX_LINE,
): AsyncGenerator<string | undefined, void, undefined> {
  const decoder = new StringDecoder("utf8");
  let [line, isTooLong] = ["", false];
  for await (const bytes of input) {
    const [first = "", ...more] = (typeof bytes === "string" ? bytes : decoder.write(bytes)).split("\n");
    for (const [at, part] of [first, ...more].entries()) {
      if (at > 0) {
        if (isTooLong) yield undefined;
        else if (line.trim() !== "") yield line;
        [line, isTooLong] = ["", false];
      }
      if (isTooLong) continue;
      // message-lines.L1
      if (line.length + part.length > maxLength) [line, isTooLong] = ["", true];
      else line += part;
    }
  }
  if (isTooLong) yield undefined;
  else if (line.trim() !== "") yield line;
}
