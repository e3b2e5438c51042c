// User stack: the frames of an error that belong to the user's program.

import { dirname, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { InvariantError, RepriseError } from "./errors.ts";
import { plainLines } from "./plain-text.ts";

/** The folder that holds this package's code, as paths and as URLs: stacks of modules contain URLs. */
const PACKAGE = dirname(dirname(fileURLToPath(import.meta.url))) + sep;
const PACKAGE_URL = pathToFileURL(PACKAGE).href;

/**
 * The stack of an error without the frames of this package and of Node: where the user's code threw. The stack of an error that
 * wraps the last of several failed attempts is that of the attempt. Undefined when the value has no stack.
 */
export function userStack(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== "string") return undefined;
  // A bug of this package: its own frames are what matters.
  if (error instanceof InvariantError) return error.stack;
  const { head, frames } = split(error.stack);
  const own = frames.filter(isOfUser);
  const { cause } = error;
  const isWrapper = error instanceof RepriseError && error.code === "MAX_ATTEMPTS_EXCEEDED" && cause instanceof Error;
  const thrown = own.length === 0 && isWrapper ? split(String(cause.stack)).frames.filter(isOfUser) : own;
  return [...head, ...thrown].join("\n");
}

/** The lines of a recorded stack that belong to the user's program, the innermost first. */
export function userFrames(stack: string): readonly string[] {
  return plainLines(stack)
    .split("\n")
    .filter((line) => FRAME.test(line) && isOfUser(line))
    .map((line) => line.trim());
}

const FRAME = /^\s+at /;

/** A message may have several lines, and may look like frames: the last block of frames counts. */
function split(stack: string): { readonly head: readonly string[]; readonly frames: readonly string[] } {
  const lines = stack.split("\n");
  let first = lines.length;
  while (first > 1 && FRAME.test(lines[first - 1]!)) first -= 1;
  return { head: lines.slice(0, first), frames: lines.slice(first) };
}

function isOfUser(frame: string): boolean {
  return !frame.includes(PACKAGE) && !frame.includes(PACKAGE_URL) && !/\(?node:/.test(frame);
}
