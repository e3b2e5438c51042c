// The check of JSON against another validator, and the values of queries.

import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as schemas from "../../src/contract/json-schema.ts";
import { checkJson, checkQuery, type JsonSchema } from "../../src/contract/index.ts";

const { anyOf, boolean, integer, json, list, number, object, oneOf, optional, record, text, time } = schemas;

const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true });

/** Schemas that the builders make, small enough for values that match by chance. */
const anySchema = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.record({ minLength: fc.nat(3), maxLength: fc.nat(5) }, { requiredKeys: [] }).map((rules) => text(rules)),
    fc.constantFrom("^a", "b$", "^[a-c]+$", "\\d").map((pattern) => text({ pattern })),
    fc
      .record(
        { minimum: fc.integer({ min: -3, max: 3 }), maximum: fc.integer({ min: -3, max: 5 }) },
        { requiredKeys: [] },
      )
      .map(integer),
    fc.record({ minimum: fc.integer({ min: -3, max: 3 }) }, { requiredKeys: [] }).map(number),
    fc.constant(boolean()),
    fc.constant(json()),
    fc.uniqueArray(fc.constantFrom("a", "b", "c"), { minLength: 1 }).map((values) => oneOf(values)),
    fc
      .tuple(tie("schema"), fc.record({ minItems: fc.nat(2), maxItems: fc.nat(3) }, { requiredKeys: [] }))
      .map(([items, rules]) => list(items, rules)),
    tie("schema").map((values) => record(values)),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((all) => anyOf(...all)),
    fc
      .dictionary(fc.constantFrom("a", "b", "c", "toString"), fc.tuple(tie("schema"), fc.boolean()))
      .map((fields) =>
        object(
          Object.fromEntries(Object.entries(fields).map(([name, [one, may]]) => [name, may ? optional(one) : one])),
        ),
      ),
  ),
})).schema;

const anyValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom("", "a", "b", "abc", "1", "😀😀", "2026-11-18T02:00:00Z"),
    fc.constantFrom(-3, 0, 1, 2, 1.5, 1e300),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "c", "toString", "__proto__"), tie("value"), { noNullPrototype: true }),
  ),
})).value;

test("the verdict on a value is that of another validator", () => {
  let [matching, refused] = [0, 0];
  fc.assert(
    fc.property(anySchema, anyValue, (schema, value) => {
      const sent = JSON.parse(JSON.stringify(value)) as unknown;
      const isValid = ajv.compile(JSON.parse(JSON.stringify(schema)) as object)(sent);
      const issues = checkJson(schema, sent);
      if (isValid) matching += 1;
      else refused += 1;
      expect(issues.length === 0, JSON.stringify({ schema, sent, issues })).toBe(isValid);
    }),
    { numRuns: 2_000, seed: 17 },
  );
  expect(Math.min(matching, refused)).toBeGreaterThan(200);
});

test("every issue has its place", () => {
  const schema = object({ name: text({ maxLength: 3 }), items: list(object({ n: integer({ minimum: 1 }) })) });
  expect(checkJson(schema, { name: "Adam", items: [{ n: 1 }, { n: 0 }, { n: "2" }, {}], "a b": 1 })).toEqual([
    { path: "$.name", message: "expected at most 3 characters, got 4" },
    { path: "$.items[1].n", message: "expected at least 1, got 0" },
    { path: "$.items[2].n", message: "expected a whole number, got text" },
    { path: "$.items[3].n", message: "is missing" },
    { path: '$["a b"]', message: "is unknown; there are name, items" },
  ]);
});

test("a value that matches none of several schemas gets the issues of the closest one", () => {
  const schema = anyOf(object({ value: json() }), object({ reject: object({ message: text() }) }));
  expect(checkJson(schema, { reject: { message: 1 } })).toEqual([
    { path: "$.reject.message", message: "expected text, got a number" },
  ]);
});

test("a text of another form gets the description of the form", () => {
  const schema = text({ pattern: "^\\d", description: "A number and a unit, such as `90 s`." });
  expect(checkJson(schema, "soon")).toEqual([
    { path: "$", message: "expected text that matches ^\\d (A number and a unit, such as `90 s`.)" },
  ]);
});

test("times are those of RFC 3339", () => {
  const ok = [
    "2026-11-18T02:00:00Z",
    "2024-02-29T23:59:59.123+05:30",
    "2026-12-31T23:59:60Z",
    "2026-12-31t15:59:60-08:00",
  ];
  const bad = [
    "2026-11-18",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-11-18T24:00:00Z",
    "2026-11-18T02:00:60Z",
    "yesterday",
  ];
  for (const one of ok) expect(checkJson(time(), one), one).toEqual([]);
  for (const one of bad) expect(checkJson(time(), one), one).toHaveLength(1);
});

test("a query gets the types of its schema", () => {
  const schema = object({
    limit: optional(integer({ minimum: 1 })),
    all: optional(boolean()),
    tag: optional(list(text())),
    after: optional(text()),
  });
  const read = (query: string) => checkQuery(schema, new URLSearchParams(query));
  expect(read("limit=5&all=true&tag=a&tag=b&after=7")).toEqual({
    value: { limit: 5, all: true, tag: ["a", "b"], after: "7" },
    issues: [],
  });
  expect(read("limit=0").issues).toEqual([{ path: "$.limit", message: "expected at least 1, got 0" }]);
  expect(read("limit=five&all=1").issues.map(({ path }) => path)).toEqual(["$.limit", "$.all"]);
  expect(read("after=1&after=2").issues).toEqual([{ path: "$.after", message: "is repeated; it takes one value" }]);
  expect(read("__proto__=1&order=up").issues.map(({ path }) => path)).toEqual(["$.__proto__", "$.order"]);
});
