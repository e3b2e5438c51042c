import fc from "fast-check";
import { expect, test } from "vitest";
import { encode } from "../base/index.ts";
import { itemTexts, memberTexts } from "./member-texts.ts";

const value = fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true }).filter((candidate) => {
  try {
    return encode(candidate) !== undefined;
  } catch {
    return false;
  }
});

test("the text of a member is the canonical text of its value, byte for byte", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), value), (fields) => {
      const cut = memberTexts(encode(fields));
      expect([...cut]).toEqual(
        Object.keys(fields)
          .sort()
          .map((key) => [key, encode(fields[key])]),
      );
    }),
  );
});

test("the text of an item is the canonical text of its value, byte for byte", () => {
  fc.assert(
    fc.property(fc.array(value), (items) => {
      expect(itemTexts(encode(items))).toEqual(items.map((item) => encode(item)));
    }),
  );
});

test.each([
  "",
  "1",
  "[]",
  "{",
  '{"a"}',
  '{"a":}',
  '{"a":1',
  '{"a":1,}',
  '{"a":1}}',
  '{"a":[1}',
  '{"a":"x\\"}',
  '{"a":1,"a":2}',
  '{"\\u0061":1}',
  '{"a":1}x',
  "{a:1}",
  '{"a":,"b":1}',
])("%j is refused as the data of an entry", (text) => {
  expect(() => memberTexts(text)).toThrow(expect.objectContaining({ code: "STORE_CORRUPT" }));
});
