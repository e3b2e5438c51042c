// Encode: from values to canonical text (codec.ts).

import { isDate, isMap, isNativeError, isSet, isUint8Array } from "./built-in.ts";
import { InvariantError, RepriseError } from "./errors.ts";
import { frameOf, payloadError, type Frame } from "./payload-path.ts";
import { BUFFER_PROTOTYPE, toBase64, utf8Length } from "./portable-bytes.ts";

export interface PayloadLimits {
  /** UTF-8 bytes of the text. */
  readonly maxBytes?: number;
  readonly maxDepth?: number;
}

export const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;
export const MAX_PAYLOAD_DEPTH = 256;

interface Rules {
  readonly maxBytes: number;
  readonly maxDepth: number;
  readonly tagged: boolean;
}

const DEFAULT_RULES: Rules = { maxBytes: MAX_PAYLOAD_BYTES, maxDepth: MAX_PAYLOAD_DEPTH, tagged: true };
const PLAIN_RULES: Rules = { maxBytes: 2 ** 29, maxDepth: MAX_PAYLOAD_DEPTH, tagged: false };

/**
 * The canonical text of a value.
 *
 * @example
 * encode({ b: 1n, a: "x" }); // {"a":"x","b":{"$":"bigint","v":"1"}}
 */
export function encode(value: unknown, limits?: PayloadLimits): string {
  if (limits === undefined) return checkSize(write(value, undefined, DEFAULT_RULES), DEFAULT_RULES);
  const { maxBytes = MAX_PAYLOAD_BYTES, maxDepth = MAX_PAYLOAD_DEPTH } = limits;
  // The walk recurses: a deeper limit than ours could overflow the stack.
  const rules = { maxBytes, maxDepth: Math.min(maxDepth, MAX_PAYLOAD_DEPTH), tagged: true };
  return checkSize(write(value, undefined, rules), rules);
}

/** Plain RFC 8785: no tags; refuses values that JSON lacks. */
export function canonicalJson(value: unknown): string {
  return write(value, undefined, PLAIN_RULES);
}

function checkSize(text: string, rules: Rules): string {
  // A code unit has at most three bytes: most texts pass without counting.
  if (text.length * 3 <= rules.maxBytes) return text;
  const bytes = utf8Length(text);
  if (bytes > rules.maxBytes) throw tooLarge(undefined, bytes, rules);
  return text;
}

function write(value: unknown, up: Frame | undefined, rules: Rules): string {
  switch (typeof value) {
    case "string":
      return quote(value, up);
    case "number":
      if (value === 0) return Object.is(value, -0) ? writeOddNumber("-0", up, rules) : "0";
      return Number.isFinite(value) ? `${value}` : writeOddNumber(`${value}`, up, rules);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return value === null ? "null" : writeObject(value, up, rules);
    case "undefined":
      requireTags("undefined", up, rules);
      return '{"$":"undefined"}';
    case "bigint":
      requireTags("a bigint", up, rules);
      return `{"$":"bigint","v":"${value}"}`;
    case "function":
      throw payloadError(
        "NOT_DATA",
        up,
        `a function (${value.name || "anonymous"}) cannot be recorded; record what it returns.`,
      );
    case "symbol":
      throw payloadError("NOT_DATA", up, `a symbol (${String(value)}) cannot be recorded; use a string.`);
    default:
      throw new InvariantError("typeof returns a known name");
  }
}

function writeOddNumber(name: string, up: Frame | undefined, rules: Rules): string {
  // RFC 8785 3.2.2.3: minus zero is written as zero.
  if (!rules.tagged && name === "-0") return "0";
  requireTags(name, up, rules);
  return `{"$":"number","v":"${name}"}`;
}

function requireTags(what: string, up: Frame | undefined, rules: Rules): void {
  if (!rules.tagged) throw payloadError("NOT_DATA", up, `${what} is not JSON.`);
}

// Characters that RFC 8785 escapes, and surrogates, which must be paired.
// oxlint-disable-next-line no-control-regex
const NOT_VERBATIM = /[\u0000-\u001f"\\\ud800-\udfff]/;

function quote(text: string, up: Frame | undefined): string {
  // For short text the test is faster; for long text the built-in is.
  if (text.length < 48 && !NOT_VERBATIM.test(text)) return `"${text}"`;
  if (!text.isWellFormed()) throw payloadError("BAD_PAYLOAD", up, "a lone surrogate is not text; no store keeps it.");
  return JSON.stringify(text);
}

function writeObject(value: object, up: Frame | undefined, rules: Rules): string {
  const frame = frameOf(value, up);
  refuseCycleAndDepth(value, frame, rules);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return writePlainObject(value as Plain, frame, rules);
  if (Array.isArray(value)) {
    if (prototype !== Array.prototype && constructorName(value) !== "Array") throw notPlain(value, up);
    return writeArray(value, frame, rules);
  }
  return writeTagged(value, prototype, frame, rules);
}

function refuseCycleAndDepth(value: object, frame: Frame, rules: Rules): void {
  for (let at = frame.up; at !== undefined; at = at.up) {
    if (at.container !== value) continue;
    throw payloadError("NOT_DATA", frame.up, "a cycle cannot be recorded; refer to the other record by its id.");
  }
  if (frame.depth > rules.maxDepth) {
    throw payloadError("PAYLOAD_TOO_DEEP", frame.up, `nested more than ${rules.maxDepth} deep; flatten it.`);
  }
}

type Plain = Readonly<Record<string, unknown>>;

function writePlainObject(value: Plain, frame: Frame, rules: Rules): string {
  // Two calls, because Reflect.ownKeys costs three times as much as both.
  const symbols = Object.getOwnPropertySymbols(value);
  if (symbols.length > 0) refuseSymbols(value, symbols, frame);
  const keys = Object.keys(value);
  if (!canBeWrittenAsIs(keys)) return writeSorted(value, keys, frame, rules);
  let text = "{";
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!;
    const member = writeMember(value, key, key, frame, rules);
    text = index === 0 ? text + member : `${text},${member}`;
    if (text.length > rules.maxBytes) throw tooLarge(frame, text.length, rules);
  }
  return `${text}}`;
}

function canBeWrittenAsIs(keys: readonly string[]): boolean {
  let previous = "";
  for (const key of keys) {
    if (key < previous || isDollars(key)) return false;
    previous = key;
  }
  return true;
}

function writeSorted(value: Plain, keys: readonly string[], frame: Frame, rules: Rules): string {
  const members = keys.map((key) => ({ key, written: rules.tagged && isDollars(key) ? `$${key}` : key }));
  // Sort the written keys, because escaping can change the order: "$!" lies between "$" and "$$".
  members.sort((a, b) => (a.written < b.written ? -1 : 1));
  let text = "";
  for (const { key, written } of members) {
    const member = writeMember(value, key, written, frame, rules);
    text = text.length === 0 ? member : `${text},${member}`;
    if (text.length > rules.maxBytes) throw tooLarge(frame, text.length, rules);
  }
  return `{${text}}`;
}

function writeMember(value: Plain, key: string, written: string, frame: Frame, rules: Rules): string {
  frame.step = key;
  if (key === "__proto__") throw payloadError("BAD_PAYLOAD", frame, "a key named __proto__ cannot be recorded safely.");
  // codec.C4: reading the property would run a getter.
  const property = Reflect.getOwnPropertyDescriptor(value, key);
  if (property === undefined || !("value" in property)) {
    throw payloadError("NOT_DATA", frame, "a getter or setter cannot be recorded; copy its value into a plain object.");
  }
  return `${quote(written, frame)}:${write(property.value, frame, rules)}`;
}

function refuseSymbols(value: Plain, symbols: readonly symbol[], frame: Frame): void {
  for (const symbol of symbols) {
    if (!Object.prototype.propertyIsEnumerable.call(value, symbol)) continue;
    frame.step = { text: `[${String(symbol)}]` };
    throw payloadError("NOT_DATA", frame, "a symbol key cannot be recorded; use a string.");
  }
}

/** Whether a key consists only of `$`. */
function isDollars(key: string): boolean {
  if (key.charCodeAt(0) !== 36) return false;
  for (let index = 1; index < key.length; index++) if (key.charCodeAt(index) !== 36) return false;
  return true;
}

function writeArray(items: readonly unknown[], frame: Frame, rules: Rules): string {
  let text = "[";
  for (let index = 0; index < items.length; index++) {
    frame.step = index;
    const item = items[index];
    if (item === undefined && !(index in items)) {
      throw payloadError("NOT_DATA", frame, "a hole in an array cannot be recorded; write undefined or null.");
    }
    text = index === 0 ? text + write(item, frame, rules) : `${text},${write(item, frame, rules)}`;
    if (text.length > rules.maxBytes) throw tooLarge(frame, text.length, rules);
  }
  return `${text}]`;
}

function writeTagged(value: object, prototype: unknown, frame: Frame, rules: Rules): string {
  if (!rules.tagged) throw notPlain(value, frame.up);
  if (prototype === Date.prototype && isDate(value)) {
    const ms = value.getTime();
    return `{"$":"date","v":${Number.isNaN(ms) ? "null" : ms}}`;
  }
  if ((prototype === Uint8Array.prototype || prototype === BUFFER_PROTOTYPE) && isUint8Array(value)) {
    if (value.byteLength > rules.maxBytes) throw tooLarge(frame.up, value.byteLength, rules);
    return `{"$":"bytes","v":"${toBase64(value)}"}`;
  }
  if (prototype === Map.prototype && isMap(value)) return writeMap(value, frame, rules);
  if (prototype === Set.prototype && isSet(value)) return writeSet(value, frame, rules);
  if (isNativeError(value)) return writeError(value, frame, rules);
  // A plain object of another realm, such as a vm context or structuredClone inside one.
  if (constructorName(value) === "Object" && Object.getPrototypeOf(prototype) === null) {
    return writePlainObject(value as Plain, frame, rules);
  }
  throw notPlain(value, frame.up);
}

function writeMap(map: ReadonlyMap<unknown, unknown>, frame: Frame, rules: Rules): string {
  let text = "";
  let index = 0;
  for (const [key, item] of map) {
    frame.step = { text: `.keys()[${index}]` };
    const keyText = write(key, frame, rules);
    frame.step = { text: `.values()[${index}]` };
    text += `${index === 0 ? "" : ","}[${keyText},${write(item, frame, rules)}]`;
    if (text.length > rules.maxBytes) throw tooLarge(frame, text.length, rules);
    index++;
  }
  return `{"$":"map","v":[${text}]}`;
}

function writeSet(set: ReadonlySet<unknown>, frame: Frame, rules: Rules): string {
  let text = "";
  let index = 0;
  for (const item of set) {
    frame.step = { text: `.values()[${index}]` };
    text += index === 0 ? write(item, frame, rules) : `,${write(item, frame, rules)}`;
    if (text.length > rules.maxBytes) throw tooLarge(frame, text.length, rules);
    index++;
  }
  return `{"$":"set","v":[${text}]}`;
}

// Written in separate fields, or never.
const OWN_FIELDS_OF_ERRORS = new Set(["__proto__", "cause", "code", "constructor", "message", "name", "stack"]);

// codec.C3: only the size limit may refuse an error.
function writeError(error: Error, frame: Frame, rules: Rules): string {
  const attempt = (step: Frame["step"], item: unknown): string | undefined => {
    frame.step = step;
    try {
      return write(item, frame, rules);
    } catch (refusal) {
      if (isTooLarge(refusal)) throw refusal;
      return undefined;
    }
  };
  const cause = ownValue(error, "cause");
  const code = ownValue(error, "code");
  const errors = ownValue(error, "errors")?.value;
  // In key order.
  let text = "";
  const add = (key: string, written: string | undefined): void => {
    if (written !== undefined) text += `${text === "" ? "" : ","}"${key}":${written}`;
  };
  if (cause !== undefined) add("cause", attempt("cause", cause.value));
  if (code !== undefined) add("code", attempt("code", code.value));
  add("data", writeErrorData(error, Array.isArray(errors), attempt));
  if (Array.isArray(errors)) {
    const items = Array.from(
      errors,
      (item, index) => attempt({ text: `.errors[${index}]` }, item) ?? '{"$":"undefined"}',
    );
    add("errors", `[${items.join(",")}]`);
  }
  add("message", quote(wellFormed(error.message, ""), frame));
  add("name", quote(wellFormed(error.name, "Error"), frame));
  return `{"$":"error","v":{${text}}}`;
}

function writeErrorData(
  error: Error,
  errorsAreWritten: boolean,
  attempt: (step: string, item: unknown) => string | undefined,
): string | undefined {
  const members: { readonly written: string; readonly text: string }[] = [];
  for (const key of Object.keys(error)) {
    if (OWN_FIELDS_OF_ERRORS.has(key) || (key === "errors" && errorsAreWritten) || !key.isWellFormed()) continue;
    const own = ownValue(error, key);
    const text = own === undefined ? undefined : attempt(key, own.value);
    if (text !== undefined) members.push({ written: isDollars(key) ? `$${key}` : key, text });
  }
  if (members.length === 0) return undefined;
  members.sort((a, b) => (a.written < b.written ? -1 : 1));
  return `{${members.map(({ written, text }) => `${quote(written, undefined)}:${text}`).join(",")}}`;
}

function ownValue(object: object, key: string): { readonly value: unknown } | undefined {
  const property = Reflect.getOwnPropertyDescriptor(object, key);
  return property === undefined || !("value" in property) ? undefined : { value: property.value };
}

function wellFormed(text: unknown, otherwise: string): string {
  return typeof text === "string" ? text.toWellFormed() : otherwise;
}

function isTooLarge(error: unknown): boolean {
  return error instanceof RepriseError && error.code === "PAYLOAD_TOO_LARGE";
}

function constructorName(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value);
  const constructor =
    typeof prototype === "object" && prototype !== null ? ownValue(prototype, "constructor")?.value : undefined;
  return typeof constructor === "function" && constructor.name !== "" ? constructor.name : "an unnamed class";
}

function notPlain(value: object, up: Frame | undefined): RepriseError {
  const problem = `an instance of ${constructorName(value)} cannot be recorded; copy what you need into a plain object.`;
  return payloadError("NOT_DATA", up, problem);
}

function tooLarge(frame: Frame | undefined, bytes: number, rules: Rules): RepriseError {
  const { maxBytes: limit } = rules;
  const size = `${bytes} bytes or more, and at most ${limit} can be recorded at once`;
  const problem = `${size}; keep it elsewhere (a file, an object store) and pass a reference.`;
  const { code, message, details } = payloadError("PAYLOAD_TOO_LARGE", frame, problem);
  return new RepriseError(code, message, { details: { ...details, bytes, limit } });
}
