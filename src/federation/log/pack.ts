// Pack: the small contents of the records of a tile, in one file.
//
// pack.L1. A line per content: {b|s, h, k, t, z}. `s` is the text of bytes that are UTF-8, `b` is base64 of others. Of a content above
//   32 KiB the line is {h, k, t, z} alone: its bytes are in a file of their own (`artifactPath`).
// pack.L2. Every line is canonical and checked against its key (content.B1). One that does not fit refuses the pack.

import { canonicalJson, RepriseError } from "../../base/index.ts";
import { checkContent, contentHead, isContentHead, type Content, type ContentHead } from "./content.ts";

/** pack.L1 */
export const MAX_PACKED_BYTES = 32 * 1024;

/** pack.L1. The text of a pack, in the order given. */
export function packText(contents: readonly Content[]): string {
  return contents.map((content) => `${packLine(content)}\n`).join("");
}

function packLine(content: Content): string {
  if (content.bytes.length > MAX_PACKED_BYTES) return canonicalJson(contentHead(content));
  const text = findText(content.bytes);
  const body = text === undefined ? { b: Buffer.from(content.bytes).toString("base64") } : { s: text };
  return canonicalJson({ ...body, ...contentHead(content) });
}

function findText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** pack.L2. The contents in a pack. */
export function parsePack(text: string): Content[] {
  return parsePackLines(text).filter((line) => "bytes" in line);
}

/** pack.L2. The contents in a pack, and the heads of those that are in files of their own. */
export function parsePackLines(text: string): (Content | ContentHead)[] {
  if (text === "") return [];
  if (!text.endsWith("\n")) throw damaged(text.split("\n").length, "is cut off");
  return text
    .slice(0, -1)
    .split("\n")
    .map((line, i) => parseLine(line, i + 1));
}

function parseLine(line: string, number: number): Content | ContentHead {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw damaged(number, "is not JSON");
  }
  if (!isContentHead(value)) throw damaged(number, "is no content");
  if (value.z > MAX_PACKED_BYTES) {
    if (Object.keys(value).length !== 4 || canonicalJson(value) !== line)
      throw damaged(number, "is of a content above 32 KiB, and is not its canonical head");
    return value;
  }
  const { b, s } = value as ContentHead & { readonly b?: unknown; readonly s?: unknown };
  const bytes = typeof s === "string" ? Buffer.from(s) : typeof b === "string" ? Buffer.from(b, "base64") : undefined;
  if (bytes === undefined) throw damaged(number, "has neither text nor base64");
  const content = checkContent(value, bytes);
  // Also finds other members, and base64 where text would do.
  if (packLine(content) !== line) throw damaged(number, "is not canonical text");
  return content;
}

function damaged(line: number, why: string): RepriseError {
  return new RepriseError("LOG_FILE_DAMAGED", `Line ${line} of a pack ${why}.`, { details: { line } });
}
