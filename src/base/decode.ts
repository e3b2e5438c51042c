// Decode: from canonical text to values (codec.ts).

import { MAX_PAYLOAD_DEPTH } from "./encode.ts";
import { reviveError } from "./error-value.ts";
import type { RepriseError } from "./errors.ts";
import { frameOf, payloadError, type Frame } from "./payload-path.ts";
import { fromBase64 } from "./portable-bytes.ts";
import { unreadableReason } from "./unreadable.ts";

/** The value of a text that `encode` wrote; refuses any other text with BAD_PAYLOAD. */
export function decode(text: string): unknown {
  if (typeof text !== "string" || !text.isWellFormed()) throw bad(undefined, "expected well-formed text.");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unreadableReason(text) ?? payloadError("BAD_PAYLOAD", undefined, "expected canonical JSON.", cause);
  }
  if (typeof value !== "object" || value === null) {
    if (typeof value === "string" && !value.isWellFormed()) throw bad(undefined, "a lone surrogate is not text.");
    return value;
  }
  return needsWalk(text) ? revive(value, undefined) : value;
}

/** Most texts contain no tag, and nothing that could hide one: JSON.parse is enough. */
function needsWalk(text: string): boolean {
  // A unicode escape could spell a `$`, a `__proto__` or a lone surrogate.
  if (text.includes('"$') || text.includes("\\u") || text.includes("__proto__")) return true;
  // Fewer containers than the limit cannot nest too deeply; counting them is fast.
  if (text.length <= 2 * MAX_PAYLOAD_DEPTH) return false;
  return mayBeDeep(text);
}

function mayBeDeep(text: string): boolean {
  let count = 0;
  for (const opening of ["[", "{"]) {
    for (let at = text.indexOf(opening); at !== -1; at = text.indexOf(opening, at + 1)) {
      if (++count > MAX_PAYLOAD_DEPTH) return true;
    }
  }
  return false;
}

type Members = Record<string, unknown>;

// In place: JSON.parse has just created these objects, and no other code refers to them.
function revive(value: unknown, up: Frame | undefined): unknown {
  if (typeof value === "string" && !value.isWellFormed()) throw bad(up, "a lone surrogate is not text.");
  if (typeof value !== "object" || value === null) return value;
  const frame = frameOf(value, up);
  if (frame.depth > MAX_PAYLOAD_DEPTH) throw bad(up, `nested more than ${MAX_PAYLOAD_DEPTH} deep.`);
  if (Array.isArray(value)) return reviveItems(value, frame);
  if (Object.hasOwn(value, "$")) return reviveTagged(value as Members, frame);
  return reviveMembers(value as Members, frame);
}

function reviveItems(items: unknown[], frame: Frame): unknown[] {
  for (let index = 0; index < items.length; index++) {
    frame.step = index;
    items[index] = revive(items[index], frame);
  }
  return items;
}

const DOLLARS = /^\$+$/;

function reviveMembers(members: Members, frame: Frame): Members {
  const keys = Object.keys(members);
  const escaped = keys.some((key) => DOLLARS.test(key));
  const target: Members = escaped ? {} : members;
  for (const key of keys) {
    frame.step = key;
    checkKey(key, frame);
    target[escaped && DOLLARS.test(key) ? key.slice(1) : key] = revive(members[key], frame);
  }
  return target;
}

function checkKey(key: string, frame: Frame): void {
  if (key === "__proto__") throw bad(frame, "a key named __proto__ is not accepted.");
  if (!key.isWellFormed()) throw bad(frame, "a lone surrogate is not text.");
}

function reviveTagged(tagged: Members, frame: Frame): unknown {
  const { $: tag, v } = tagged;
  const keyCount = Object.keys(tagged).length;
  if (tag === "undefined" && keyCount === 1) return undefined;
  if (keyCount !== 2 || !Object.hasOwn(tagged, "v")) throw bad(frame.up, 'expected a tag with exactly "$" and "v".');
  switch (tag) {
    case "number":
      if (v === "-0" || v === "NaN" || v === "Infinity" || v === "-Infinity") return Number(v);
      break;
    case "bigint":
      if (typeof v === "string" && /^(?:0|-?[1-9]\d*)$/.test(v)) return BigInt(v);
      break;
    case "date":
      if (v === null) return new Date(Number.NaN);
      if (typeof v === "number" && Number.isInteger(v) && Math.abs(v) <= 8.64e15) return new Date(v);
      break;
    case "bytes":
      if (typeof v === "string") return reviveBytes(v, frame);
      break;
    case "set":
      if (Array.isArray(v)) return new Set(reviveItems(v, frame));
      break;
    case "map":
      if (Array.isArray(v)) return reviveMap(v, frame);
      break;
    case "error":
      if (isMembers(v)) return reviveErrorTag(v, frame);
      break;
    default:
      throw bad(frame.up, `unknown tag ${JSON.stringify(tag) ?? ""}; a newer version may have written it.`);
  }
  throw bad(frame.up, `the value of the tag ${JSON.stringify(tag)} is malformed.`);
}

function reviveBytes(base64: string, frame: Frame): Uint8Array {
  const bytes = fromBase64(base64);
  if (bytes === undefined) throw bad(frame.up, "expected base64.");
  return bytes;
}

function reviveMap(pairs: readonly unknown[], frame: Frame): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>();
  for (const [index, pair] of pairs.entries()) {
    frame.step = index;
    if (!Array.isArray(pair) || pair.length !== 2) throw bad(frame, "expected a pair of key and value.");
    map.set(revive(pair[0], frame), revive(pair[1], frame));
  }
  return map;
}

const ERROR_FIELDS = new Set(["cause", "code", "data", "errors", "message", "name"]);

function reviveErrorTag(fields: Members, frame: Frame): Error {
  const { name, message, data, errors } = fields;
  const known = Object.keys(fields).every((field) => ERROR_FIELDS.has(field));
  if (
    !known ||
    typeof name !== "string" ||
    typeof message !== "string" ||
    !name.isWellFormed() ||
    !message.isWellFormed()
  ) {
    throw bad(frame.up, 'the value of the tag "error" is malformed.');
  }
  if (errors !== undefined && !Array.isArray(errors)) throw bad(frame.up, "the errors of an error are a list.");
  if (data !== undefined && !isMembers(data)) throw bad(frame.up, "the data of an error is an object.");
  // The fields have the depth of the error itself: in memory they are its own members.
  frame.step = "cause";
  const cause = Object.hasOwn(fields, "cause") ? { cause: revive(fields["cause"], frame) } : undefined;
  frame.step = "code";
  const code = Object.hasOwn(fields, "code") ? { code: revive(fields["code"], frame) } : undefined;
  frame.step = "errors";
  return reviveError({
    name,
    message,
    ...cause,
    ...code,
    ...(errors === undefined ? undefined : { errors: reviveItems(errors, frame) }),
    data: data === undefined ? {} : reviveMembers(data, frame),
  });
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function bad(frame: Frame | undefined, problem: string): RepriseError {
  return payloadError("BAD_PAYLOAD", frame, problem);
}
