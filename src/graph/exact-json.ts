// Reading JSON of others: every field is known, of its type, and kept exactly, or it is refused with the path to it.
//
// X1. An integer that a double cannot hold keeps all its digits (G2); where no such number is expected it is refused.
// X2. An unknown field is refused: dropped in silence, it would be missing in what is written again.
// X3. What a payload may not hold (a lone surrogate, `__proto__`, an unknown tag) is refused as everywhere.

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
    throw new RepriseError(
      "PAYLOAD_TOO_LARGE",
      `${what}: ${text.length} characters, at most ${MAX_JSON_LENGTH} are read.`,
    );
  let value: unknown;
  try {
    value = JSON.parse(text, exactly as Parameters<typeof JSON.parse>[1]);
  } catch (cause) {
    // The reviver walks down by itself.
    if (cause instanceof RangeError) throw tooDeep(what, "");
    throw bad(what, "", `expected JSON: ${(cause as Error).message}`, cause);
  }
  return value;
}

function tooDeep(what: string, path: string): RepriseError {
  const where = path === "" ? what : `${what}, ${path}`;
  return new RepriseError("PAYLOAD_TOO_DEEP", `${where}: nested more than ${MAX_PAYLOAD_DEPTH} deep; flatten it.`);
}

/** The fields of one object; each is asked for once, and none may be left (X2). */
export class Fields {
  readonly #what: string;
  readonly #path: string;
  readonly #members: Readonly<Record<string, unknown>>;
  readonly #asked = new Set<string>();

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
    this.#asked.add(name);
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

  /** X1 */
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

  /** RFC 3339; what is finer than a millisecond is cut off. */
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

  /** Data as payloads have it, tags included. */
  data(name: string): unknown {
    if (!this.has(name)) throw this.refuse(name, "is missing");
    const value = this.#take(name);
    const odd = findOdd(value, 0);
    if (odd !== undefined) throw odd(this.#what, this.at(name));
    try {
      return decode(JSON.stringify(value));
    } catch (error) {
      if (!(error instanceof RepriseError)) throw error;
      throw new RepriseError(error.code, `${this.#what}, ${this.at(name)}: ${error.message}`, { cause: error });
    }
  }

  /** Versions beyond ours say more than we know of. */
  version(most: number): void {
    const version = this.count("version", most);
    if (version > most || version === 0)
      throw this.refuse("version", `expected version ${most} or older, got ${version}; update reprise to read it`);
  }

  /** X2 */
  end(): void {
    const unknown = Object.keys(this.#members).find((name) => !this.#asked.has(name));
    if (unknown !== undefined)
      throw this.refuse(unknown, `is not a field of it; expected ${[...this.#asked].join(", ")}`);
  }
}

type Refusal = (what: string, path: string) => RepriseError;

/** What data cannot hold. Its path is put together on the way back, and only when something was found. */
function findOdd(value: unknown, depth: number): Refusal | undefined {
  if (value instanceof LargeInteger)
    return (what, path) =>
      bad(
        what,
        path,
        `${value.value} has more digits than a number can keep; write {"$":"bigint","v":"${value.value}"}`,
      );
  if (typeof value === "number" && !Number.isFinite(value))
    return (what, path) => bad(what, path, "the number is larger than a number can be");
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > MAX_PAYLOAD_DEPTH) return (what) => tooDeep(what, "");
  for (const key of Object.keys(value)) {
    const odd = findOdd((value as Record<string, unknown>)[key], depth + 1);
    if (odd !== undefined) return (what, path) => odd(what, `${path}.${key}`);
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
