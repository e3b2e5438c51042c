// Names: the rules for names and run ids.

import { RepriseError } from "./errors.ts";
import type { ErrorCode } from "./error-catalogue.ts";

const MAX_NAME_LENGTH = 200;
const MAX_RUN_ID_LENGTH = 255;
/** With the longest name, a key fits into the primary keys of every store. */
const MAX_KEY_LENGTH = 150;

const CONTROL_CHARACTER = /\p{Cc}/u;

/** Refuses a name that some store would not keep unchanged. */
export function checkName(name: unknown, what: string): string {
  return checkText(name, what, MAX_NAME_LENGTH, "BAD_NAME");
}

/** Refuses a run id that some store would not keep unchanged. */
export function checkRunId(id: unknown): string {
  return checkText(id, "run id", MAX_RUN_ID_LENGTH, "BAD_ID");
}

/** Refuses a key of a promise that some store would not keep unchanged. */
export function checkKey(key: unknown, what: string): string {
  return checkText(key, what, MAX_KEY_LENGTH, "BAD_NAME");
}

function checkText(text: unknown, what: string, maxLength: number, code: ErrorCode): string {
  if (typeof text !== "string") throw bad(code, what, maxLength, `not ${text === null ? "null" : typeof text}`);
  if (text.length === 0) throw bad(code, what, maxLength, "not an empty one");
  if (text.length > maxLength) throw bad(code, what, maxLength, `not one of ${text.length}`);
  if (!text.isWellFormed()) throw bad(code, what, maxLength, "but it contains a lone surrogate, which is not text");
  if (CONTROL_CHARACTER.test(text)) throw bad(code, what, maxLength, `not ${JSON.stringify(text)}`);
  return text;
}

function bad(code: ErrorCode, what: string, maxLength: number, problem: string): RepriseError {
  const expected = `expected a string of 1 to ${maxLength} characters without control characters`;
  return new RepriseError(code, `${what}: ${expected}, ${problem}.`, { details: { what } });
}
