// Thrown error: a value that code threw, for the wire: the frames of the user's code first.

import { userFrames } from "../base/index.ts";
import type { ThrownError } from "../contract/index.ts";
import type { Redaction } from "../kernel/index.ts";

/** Removes secrets from texts. */
export interface TextRedaction {
  readonly redaction: Pick<Redaction, "text">;
}

const MAX_FRAMES = 10;
const MAX_MESSAGE = 4_000;

/** `stack`: the recorded one, if the error itself has none. */
export function thrownErrorOf(error: unknown, { redaction }: TextRedaction, stack?: unknown): ThrownError {
  const thrown = (typeof error === "object" && error !== null ? error : {}) as Partial<Error & { code: unknown }>;
  const isError = typeof thrown.message === "string";
  const text = typeof stack === "string" ? stack : typeof thrown.stack === "string" ? thrown.stack : "";
  const frames = userFrames(text);
  const all = text.split("\n").filter((line) => /^\s+at /.test(line)).length;
  return {
    name: typeof thrown.name === "string" ? thrown.name : "Error",
    message: redaction.text(isError ? thrown.message! : String(error)).slice(0, MAX_MESSAGE),
    ...(typeof thrown.code === "string" && { code: thrown.code }),
    ...(frames.length > 0 && { frames: frames.slice(0, MAX_FRAMES) }),
    ...(all > frames.length && { hiddenFrames: all - frames.length }),
  };
}

/** The error in one line. Of a step whose attempts ran out, the last error comes first: where a line is cut, that one stays. */
export function errorLine(error: unknown, view: TextRedaction): string {
  const { name, message, code } = thrownErrorOf(error, view);
  const [, attempts, last = ""] = /^(All \d+ attempts failed\.) Last error: (.*)$/s.exec(message) ?? [];
  if (code !== "MAX_ATTEMPTS_EXCEEDED" || attempts === undefined) return `${name}: ${message}`;
  const { cause } = error as Error;
  const sentence = cause instanceof Error ? `${cause.name}: ${last}` : last;
  return `${sentence}${/[.!?…]$/.test(sentence) ? "" : "."} ${attempts}`;
}
