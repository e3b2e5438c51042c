// Redact: removes secrets from values before people see them. A secret is known by its key or by its value.
//
// redact.A1. The given value is never changed: the result is the same value, or a copy that contains `[redacted]`.
// redact.A2. No code of the value runs: no getter, no toJSON.

import { types } from "node:util";

export const REDACTED = "[redacted]";

/** Texts to remove, longest first. */
export type Needles = readonly string[];

/** Shorter texts would match everywhere. */
const MIN_LENGTH = 4;

/** A value in each of its spellings: plain, in JSON and in a URL. */
export function needlesOf(values: readonly unknown[]): Needles {
  const needles = new Set<string>();
  for (const value of values) {
    if (typeof value !== "string" || value.length < MIN_LENGTH) continue;
    needles.add(value);
    needles.add(JSON.stringify(value).slice(1, -1));
    if (value.isWellFormed()) needles.add(encodeURIComponent(value));
  }
  return [...needles].sort((a, b) => b.length - a.length);
}

export function redactText(text: string, needles: Needles): string {
  let clean = text;
  for (const needle of needles) if (clean.includes(needle)) clean = clean.replaceAll(needle, REDACTED);
  return clean;
}

// Compared without case, `_` and `-`. `token` matches only as a whole or after a prefix such as `access`: `maxTokens` and
// `nextPageToken` are not secrets.
const SECRET_NAME =
  /password|passwd|passphrase|secret|credential|apikey|privatekey|accesskey|authorization|cookie$|^(?:(?:access|api|auth|bearer|client|csrf|id|refresh|session|xsrf)token|token|auth|pin|jwt)$/;

function simplified(key: string): string {
  return key.toLowerCase().replace(/[_\-\s.]/g, "");
}

/** Whether the value under a key is a secret; `more` are additional names and patterns from the user. */
export function secretKeys(more: readonly (string | RegExp)[] = []): (key: string) => boolean {
  const names = new Set(more.filter((key) => typeof key === "string").map(simplified));
  const patterns = more.filter((key) => typeof key !== "string");
  return (key) => {
    const name = simplified(key);
    return SECRET_NAME.test(name) || names.has(name) || patterns.some((pattern) => key.search(pattern) !== -1);
  };
}

export interface RedactRules {
  readonly needles: Needles;
  readonly isSecret?: (key: string) => boolean;
}

const MAX_DEPTH = 256;

/** redact.A1 */
export function redactData(value: unknown, rules: RedactRules): unknown {
  return walk(value, rules, []);
}

function walk(value: unknown, rules: RedactRules, path: readonly object[]): unknown {
  if (typeof value === "string") return redactText(value, rules.needles);
  if (typeof value !== "object" || value === null) return value;
  if (path.includes(value)) return "[circular]";
  if (path.length > MAX_DEPTH) return "[nested too deeply]";
  const inner = [...path, value];
  const of = (member: unknown): unknown => walk(member, rules, inner);
  if (Array.isArray(value)) return sameOr(value, value.map(of));
  if (types.isMap(value)) return walkMap(value, rules, of);
  if (types.isSet(value)) {
    const members = [...value];
    return sameOr(members, members.map(of)) === members ? value : new Set(members.map(of));
  }
  if (types.isDate(value) || types.isTypedArray(value) || types.isProxy(value)) return value;
  return walkMembers(value, rules, of);
}

function sameOr<T>(before: T[], after: T[]): T[] {
  return before.every((item, index) => Object.is(item, after[index])) ? before : after;
}

function walkMap(map: ReadonlyMap<unknown, unknown>, rules: RedactRules, of: (value: unknown) => unknown): unknown {
  const before = [...map];
  const after = before.map(
    ([key, item]) =>
      [of(key), typeof key === "string" && rules.isSecret?.(key) === true ? hidden(item) : of(item)] as const,
  );
  const isSame = before.every(([key, item], at) => Object.is(key, after[at]![0]) && Object.is(item, after[at]![1]));
  return isSame ? map : new Map(after);
}

/** Members of errors that are printed although they are not enumerable. */
const OF_ERRORS = ["name", "message", "stack", "cause", "errors"];

function walkMembers(value: object, rules: RedactRules, of: (value: unknown) => unknown): object {
  const isError = value instanceof Error || types.isNativeError(value);
  const changes: [string, PropertyDescriptor][] = [];
  for (const key of new Set([...Object.keys(value), ...(isError ? OF_ERRORS : [])])) {
    const property = Reflect.getOwnPropertyDescriptor(value, key);
    if (property === undefined) continue;
    // redact.A2. The stack of a native error may be an accessor of the JavaScript engine.
    const before: unknown =
      "value" in property ? property.value : isError && key === "stack" ? stackOf(value) : undefined;
    const after = rules.isSecret?.(key) === true ? hidden(before) : of(before);
    if (!Object.is(before, after))
      changes.push([
        key,
        { value: after, enumerable: property.enumerable ?? false, writable: true, configurable: true },
      ]);
  }
  if (changes.length === 0) return value;
  const copy = Object.create(Object.getPrototypeOf(value) as object | null, {
    ...Object.getOwnPropertyDescriptors(value),
    ...Object.fromEntries(changes),
  }) as object;
  return copy;
}

function stackOf(error: object): unknown {
  return (error as { stack?: unknown }).stack;
}

/** Keeps empty values: whether there is a secret is not secret. */
function hidden(value: unknown): unknown {
  return value === undefined || value === null || value === "" || typeof value === "boolean" ? value : REDACTED;
}
