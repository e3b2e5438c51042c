// Values from the command line: JSON as an argument, from a file, or from standard input.

import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { decode, RepriseError } from "../base/index.ts";

/** Undefined when neither is given. */
export async function readInput(given: string | undefined, file: string | undefined): Promise<unknown> {
  if (given !== undefined && file !== undefined)
    throw new RepriseError("USAGE", "Give the input once: as an argument or with --input-file, not both.");
  if (given !== undefined) return parseInput(given, "the argument");
  if (file === undefined) return undefined;
  if (file === "-") return parseInput(await text(process.stdin), "standard input");
  let content: string;
  try {
    content = readFileSync(file, "utf8");
  } catch (cause) {
    throw new RepriseError("USAGE", `--input-file: ${file} cannot be read.`, { cause });
  }
  return parseInput(content, file);
}

/** What `--json` prints can be given back: `{"$":"date","v":0}` is a Date. */
function parseInput(content: string, where: string): unknown {
  try {
    JSON.parse(content);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RepriseError("BAD_INPUT", `Expected JSON in ${where}: ${reason}.${quotingHint(content)}`, { cause });
  }
  return decode(content);
}

/** The shell took the quotes away: by far the most common slip. */
function quotingHint(content: string): string {
  return /^[^\s"'{}[\]][^"'{}[\]]*$/.test(content.trim())
    ? ` Text needs quotes inside quotes: '"${content.trim()}"'.`
    : "";
}
