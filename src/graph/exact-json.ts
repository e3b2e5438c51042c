// Exact JSON: reads JSON of other programs. A field that is unknown, of a wrong type or not representable is rejected with
// its path.
//
// exact-json.X1. An integer that a double cannot hold keeps all its digits (rules.G2), or is rejected if the field takes none.
// exact-json.X2. An unknown field is rejected, because it would be missing when the value is written again.
// exact-json.X3. Values that a payload may not hold (a lone surrogate, `__proto__`, an unknown tag) are rejected.

import { decode, MAX_PAYLOAD_DEPTH, RepriseError } from "../base/index.ts";

export const MAX_JSON_LENGTH = 64 * 1024 * 1024;

/** An integer beyond 2^53, by its source text. */
class LargeInteger {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown;

const exactly: Reviver = (_key, value, { source }) => {
  if (typeof value !== "number" || source === undefined || Number.isSafeInteger(value)) return value;
  return /^-?\d+$/.test(source) ? new LargeInteger(BigInt(source)) : value;
};

export function bad(what: string, path: string, problem: string, cause?: unknown): RepriseError {
  const where = path === "" ? what : `${what}, ${path}`;
  return new RepriseError("BAD_FORMAT", `${where}: ${problem}.`, { cause, details: { what, path } });
}

export function parseExactly(text: unknown, what: string): unknown {
  if (typeof text !== "string") throw bad(what, "", `expected JSON text, got ${nameOf(text)}`);
  if (text.length > MAX_JSON_LENGTH)
    throw new RepriseError("PAYLOAD_TOO_LARGE", `${what}: ${text.length} characters; the limit is ${MAX_JSON_LENGTH}.`);
  let value: unknown;
  try {
    value = JSON.parse(text, exactly as Parameters<typeof JSON.parse>[1]);
  } catch (cause) {
    // The reviver recurses.
    if (cause instanceof RangeError) throw tooDeep(what, "");
    throw bad(what, "", `expected JSON: ${(cause as Error).message}`, cause);
  }
  return value;
}

function tooDeep(what: string, path: string): RepriseError {
  const where = path === "" ? what : `${what}, ${path}`;
  return new RepriseError("PAYLOAD_TOO_DEEP", `${where}: nested more than ${MAX_PAYLOAD_DEPTH} deep; flatten it.`);
}

/** The fields of one object. Each is read once, and `end` rejects those that were not read (exact-json.X2). */
export class JsonFields {
  readonly #what: string;
  readonly #path: string;
  readonly #members: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();

  constructor(what: string, path: string, value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof LargeInteger)
      throw bad(what, path, `expected an object, got ${nameOf(value)}`);
    this.#what = what;
    this.#path = path;
    this.#members = value as Record<string, unknown>;
  }

  at(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#members, name);
  }

  #take(name: string): unknown {
    this.#read.add(name);
    return this.has(name) ? this.#members[name] : undefined;
  }

  refuse(name: string, problem: string, cause?: unknown): RepriseError {
    return bad(this.#what, this.at(name), problem, cause);
  }

  text(name: string, otherwise?: string): string {
    const value = this.#take(name) ?? otherwise;
    if (typeof value !== "string") throw this.refuse(name, `expected text, got ${nameOf(value)}`);
    if (!value.isWellFormed()) throw this.refuse(name, "a lone surrogate is not text");
    return value;
  }

  /** A whole number of 0 or more. */
  count(name: string, otherwise?: number): number {
    const value = this.#take(name) ?? otherwise;
    if (!Number.isSafeInteger(value) || (value as number) < 0)
      throw this.refuse(name, `expected a whole number of 0 or more, got ${nameOf(value)}`);
    return value as number;
  }

  /** exact-json.X1 */
  integer(name: string, least: bigint, most: bigint): bigint {
    const value = this.#take(name);
    const exact =
      value instanceof LargeInteger ? value.value : Number.isSafeInteger(value) ? BigInt(value as number) : undefined;
    if (exact === undefined || exact < least || exact > most)
      throw this.refuse(name, `expected a whole number from ${least} to ${most}, got ${nameOf(value)}`);
    return exact;
  }

  milliseconds(name: string): number | undefined {
    const value = this.#take(name);
    if (value === undefined) return undefined;
    if (typeof value !== "number" || !(value >= 0 && Number.isFinite(value)))
      throw this.refuse(name, `expected milliseconds, got ${nameOf(value)}`);
    return value;
  }

  /** RFC 3339, truncated to milliseconds. */
  time(name: string): Date {
    const text = this.text(name);
    const time = TIME.test(text) ? new Date(text) : undefined;
    if (time === undefined || Number.isNaN(time.getTime()))
      throw this.refuse(name, `expected a time such as 2025-10-28T10:30:00Z, got ${nameOf(text)}`);
    return time;
  }

  list(name: string): readonly unknown[] {
    const value = this.#take(name);
    if (!Array.isArray(value)) throw this.refuse(name, `expected a list, got ${nameOf(value)}`);
    return value;
  }

  /** A payload, with tags. */
  data(name: string): unknown {
    if (!this.has(name)) throw this.refuse(name, "is missing");
    const value = this.#take(name);
    const found = findUnrepresentable(value, 0);
    if (found !== undefined) throw found(this.#what, this.at(name));
    try {
      return decode(JSON.stringify(value));
    } catch (error) {
      if (!(error instanceof RepriseError)) throw error;
      throw new RepriseError(error.code, `${this.#what}, ${this.at(name)}: ${error.message}`, { cause: error });
    }
  }

  /** A newer version may have fields that this one does not know. */
  version(most: number): void {
    const version = this.count("version", most);
    if (version > most || version === 0)
      throw this.refuse("version", `expected version ${most} or older, got ${version}; upgrade reprise to read it`);
  }

  /** exact-json.X2 */
  end(): void {
    const unknown = Object.keys(this.#members).find((name) => !this.#read.has(name));
    if (unknown !== undefined)
      throw this.refuse(unknown, `is not a known field; expected ${[...this.#read].join(", ")}`);
  }
}

type Refusal = (what: string, path: string) => RepriseError;

/** Finds a value that a payload cannot hold. The path is built on the way back, and only after a find. */
function findUnrepresentable(value: unknown, depth: number): Refusal | undefined {
  if (value instanceof LargeInteger)
    return (what, path) =>
      bad(
        what,
        path,
        `${value.value} has more digits than a JavaScript number can hold; write {"$":"bigint","v":"${value.value}"}`,
      );
  if (typeof value === "number" && !Number.isFinite(value))
    return (what, path) => bad(what, path, "the number is too large for a JavaScript number");
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > MAX_PAYLOAD_DEPTH) return (what) => tooDeep(what, "");
  for (const key of Object.keys(value)) {
    const found = findUnrepresentable((value as Record<string, unknown>)[key], depth + 1);
    if (found !== undefined) return (what, path) => found(what, `${path}.${key}`);
  }
  return undefined;
}

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

function nameOf(value: unknown): string {
  if (value instanceof LargeInteger) return String(value.value);
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  const text = JSON.stringify(value) ?? typeof value;
  return text.length <= 60 ? text : `${text.slice(0, 57)}…`;
}
