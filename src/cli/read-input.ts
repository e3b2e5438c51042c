// Read input: a JSON value from an argument, from a file, or from standard input.

import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { decode, RepriseError } from "../base/index.ts";

/** Returns undefined if no value is given. `what`: "input" is an argument, everything else is an option. */
export async function readInput(given: string | undefined, file: string | undefined, what = "input"): Promise<unknown> {
  const place = what === "input" ? "as an argument" : `with --${what}`;
  if (given !== undefined && file !== undefined)
    throw new RepriseError("USAGE", `The ${what} is given twice. Pass it ${place} or with --${what}-file, not both.`);
  if (given !== undefined) return parseInput(given, what === "input" ? "the argument" : `--${what}`);
  if (file === undefined) return undefined;
  if (file === "-") return parseInput(await text(process.stdin), "standard input");
  let content: string;
  try {
    content = readFileSync(file, "utf8");
  } catch (cause) {
    throw new RepriseError("USAGE", `--${what}-file: ${file} cannot be read.`, { cause });
  }
  return parseInput(content, file);
}

/** Accepts the values that `--json` prints: `{"$":"date","v":0}` is a Date. */
function parseInput(content: string, where: string): unknown {
  try {
    JSON.parse(content);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RepriseError("BAD_INPUT", `Expected JSON in ${where}: ${reason}.${quotingHint(content)}`, { cause });
  }
  return decode(content);
}

/** A hint for the most common mistake: the shell removed the quotes. */
function quotingHint(content: string): string {
  return /^[^\s"'{}[\]][^"'{}[\]]*$/.test(content.trim())
    ? ` A JSON string needs quotes inside quotes: '"${content.trim()}"'.`
    : "";
}
