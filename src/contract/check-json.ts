// Check JSON: whether a JSON value matches a schema of json-schema.ts, with every issue and its place.
//
// check-json.C1. For the keywords that json-schema.ts writes, the verdict is that of JSON Schema 2020-12 with `format` asserted; a test
//   compares it with another validator. A keyword that it does not know is ignored, as JSON Schema says.
// check-json.C2. It reads a value and changes nothing; only `checkQuery` makes values, from texts.

import type { JsonSchema } from "./json-schema.ts";

/** What is wrong, and where: `$.items[3].name`. */
export interface JsonIssue {
  readonly path: string;
  readonly message: string;
}

/** Further issues are not listed. */
const MAX_ISSUES = 50;

/** Every issue of the value; none: it matches. */
export function checkJson(schema: JsonSchema, value: unknown, path = "$"): readonly JsonIssue[] {
  const issues: JsonIssue[] = [];
  check(schema, value, path, issues);
  return issues.slice(0, MAX_ISSUES);
}

function check(schema: JsonSchema, value: unknown, path: string, issues: JsonIssue[]): void {
  if (issues.length >= MAX_ISSUES) return;
  const add = (message: string): void => void issues.push({ path, message });
  const { anyOf } = schema as { anyOf?: readonly JsonSchema[] };
  if (anyOf !== undefined) checkAnyOf(anyOf, value, path, issues);
  if (schema.type !== undefined && !hasType(schema.type, value))
    return add(`expected ${article(schema.type)}, got ${nameOf(value)}`);
  const { enum: allowed } = schema as { enum?: readonly unknown[] };
  if (allowed !== undefined && !allowed.includes(value))
    return add(`expected one of ${allowed.map((one) => JSON.stringify(one)).join(", ")}`);
  if (typeof value === "string") checkText(schema, value, add);
  else if (typeof value === "number") checkNumber(schema, value, add);
  else if (Array.isArray(value)) checkList(schema, value, path, issues);
  else if (typeof value === "object" && value !== null) checkObject(schema, value as Fields, path, issues);
}

type Fields = Readonly<Record<string, unknown>>;
type Add = (message: string) => void;

function checkAnyOf(schemas: readonly JsonSchema[], value: unknown, path: string, issues: JsonIssue[]): void {
  const found = schemas.map((schema) => checkJson(schema, value, path));
  if (found.some(({ length }) => length === 0)) return;
  // The issues of the schema that comes closest: those that stand deepest, then the fewest.
  const depth = (list: readonly JsonIssue[]): number => Math.max(...list.map((issue) => issue.path.length));
  issues.push(...found.toSorted((a, b) => depth(b) - depth(a) || a.length - b.length)[0]!);
}

function hasType(type: string, value: unknown): boolean {
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "number") return typeof value === "number" && Number.isFinite(value);
  if (type === "null") return value === null;
  return typeof value === type;
}

interface TextRules {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly description?: string;
}

function checkText(schema: JsonSchema, value: string, add: Add): void {
  const { minLength = 0, maxLength = Infinity, pattern, format, description } = schema as TextRules;
  const length = value.length > maxLength || value.length < 2 * minLength ? lengthOf(value) : minLength;
  if (length < minLength) add(`expected at least ${count(minLength, "character")}, got ${length}`);
  if (length > maxLength) add(`expected at most ${count(maxLength, "character")}, got ${length}`);
  if (pattern !== undefined && !new RegExp(pattern, "u").test(value))
    add(`expected text that matches ${pattern}${description === undefined ? "" : ` (${description})`}`);
  if (format === "date-time" && !isDateTime(value)) add('expected a time such as "2026-11-18T02:00:00Z"');
}

/** JSON Schema counts characters, not units of UTF-16. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

const DATE_TIME = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** RFC 3339. A leap second is allowed where one can be: at the end of a day in UTC. */
function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text);
  if (match === null) return false;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const offset = match[7] === undefined ? 0 : (match[7] === "-" ? -1 : 1) * (Number(match[8]) * 60 + Number(match[9]));
  if (Number(match[8] ?? 0) > 23 || Number(match[9] ?? 0) > 59) return false;
  if (month < 1 || month > 12 || day < 1 || day > daysOf(year, month)) return false;
  if (hour > 23 || minute > 59 || second > 60) return false;
  return second < 60 || (((hour * 60 + minute - offset) % 1_440) + 1_440) % 1_440 === 1_439;
}

function daysOf(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function checkNumber(schema: JsonSchema, value: number, add: Add): void {
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
  if (minimum !== undefined && value < minimum) add(`expected at least ${minimum}, got ${value}`);
  if (maximum !== undefined && value > maximum) add(`expected at most ${maximum}, got ${value}`);
}

function checkList(schema: JsonSchema, value: readonly unknown[], path: string, issues: JsonIssue[]): void {
  const { items, minItems, maxItems } = schema as { items?: JsonSchema; minItems?: number; maxItems?: number };
  const add = (message: string): void => void issues.push({ path, message });
  if (minItems !== undefined && value.length < minItems)
    add(`expected at least ${count(minItems, "item")}, got ${value.length}`);
  if (maxItems !== undefined && value.length > maxItems)
    return add(`expected at most ${count(maxItems, "item")}, got ${value.length}`);
  if (items === undefined) return;
  for (const [index, one] of value.entries()) check(items, one, `${path}[${index}]`, issues);
}

interface ObjectRules {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false | JsonSchema;
}

function checkObject(schema: JsonSchema, value: Fields, path: string, issues: JsonIssue[]): void {
  const { properties = {}, required = [], additionalProperties } = schema as ObjectRules;
  for (const name of required)
    if (!Object.hasOwn(value, name)) issues.push({ path: pathTo(path, name), message: "is missing" });
  for (const [name, one] of Object.entries(value)) {
    const rule = Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    if (rule === false) issues.push({ path: pathTo(path, name), message: `is unknown${known(properties)}` });
    else if (rule !== undefined) check(rule, one, pathTo(path, name), issues);
  }
}

function known(properties: object): string {
  const names = Object.keys(properties);
  return names.length === 0 ? "" : `; there are ${names.join(", ")}`;
}

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
const MAX_NAME = 100;

function pathTo(path: string, name: string): string {
  const short = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
  return IDENTIFIER.test(short) ? `${path}.${short}` : `${path}[${JSON.stringify(short)}]`;
}

function nameOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  return article(Array.isArray(value) ? "array" : typeof value);
}

function article(type: string): string {
  const names: Readonly<Record<string, string>> = { array: "a list", object: "an object", integer: "a whole number" };
  return names[type] ?? (type === "string" ? "text" : type === "null" ? "null" : `a ${type}`);
}

function count(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? "" : "s"}`;
}

/** The values of a query as its schema types them, with the issues. A list is repeated; another parameter is not. */
export function checkQuery(
  schema: JsonSchema,
  query: URLSearchParams,
): { readonly value: Fields; readonly issues: readonly JsonIssue[] } {
  const { properties = {} } = schema as ObjectRules;
  const value: Record<string, unknown> = {};
  const issues: JsonIssue[] = [];
  for (const name of new Set(query.keys())) {
    const texts = query.getAll(name);
    const rule = Object.hasOwn(properties, name) ? properties[name]! : undefined;
    // An own property, also of the name __proto__.
    const set = (one: unknown): void =>
      void Object.defineProperty(value, name, { value: one, enumerable: true, configurable: true, writable: true });
    if (rule?.type === "array") set(texts.map((text) => valueOf((rule as { items?: JsonSchema }).items, text)));
    else if (texts.length > 1) issues.push({ path: pathTo("$", name), message: "is repeated; it takes one value" });
    else set(valueOf(rule, texts[0]!));
  }
  return { value, issues: [...issues, ...checkJson(schema, value)].slice(0, MAX_ISSUES) };
}

const NUMBER = /^-?\d{1,30}(?:\.\d{1,30})?$/;

/** A text that is not of the type stays a text, which the check then refuses. */
function valueOf(rule: JsonSchema | undefined, text: string): unknown {
  if ((rule?.type === "integer" || rule?.type === "number") && NUMBER.test(text)) return Number(text);
  if (rule?.type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
