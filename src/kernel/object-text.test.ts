import { expect, test } from "vitest";
import { decode, drawUnit, encode, MAX_PAYLOAD_BYTES } from "../base/index.ts";
import { applyDelta, type ChannelTexts } from "./checkpoint.ts";
import { mergeMembers } from "./object-text.ts";

const KEYS = ["", "a", "b", "aa", "é", "\u{1f600}", "10", "9", "$", "$$", "$a", 'quo"te', "new\nline", "last"];
const VALUES = [
  0,
  "text",
  null,
  [1, { b: 1, a: 2 }],
  { z: 1, a: "," },
  '}{",',
  new Date(5),
  undefined,
  1n,
  new Map([[1, 2]]),
];

test("merging keys into a text gives the text of the whole object, for any keys and values", () => {
  for (let round = 0; round < 60; round += 1) {
    let draws = 0;
    const draw = (below: number): number => Math.floor(drawUnit(7n, `round ${round}`, draws++) * below);
    let texts: ChannelTexts = new Map([["c", "{}"]]);
    let whole: Record<string, unknown> = {};
    // Rounds without the keys that are written otherwise than they are, too: those take the short way throughout.
    const keys = round % 2 === 0 ? KEYS : KEYS.filter((key) => !key.startsWith("$"));
    for (let step = 0; step < 20; step += 1) {
      const laid = Object.fromEntries(
        Array.from({ length: draw(4) }, () => [keys[draw(keys.length)]!, VALUES[draw(VALUES.length)]]),
      );
      whole = { ...whole, ...laid };
      texts = applyDelta(texts, { merge: { c: laid } });
      expect(texts.get("c")).toBe(encode(whole));
    }
  }
});

test("the known members of another text are not used", () => {
  const known = mergeMembers("{}", { a: 1, b: 2 }, undefined);
  expect(mergeMembers('{"b":7}', { c: 1 }, known).text).toBe('{"b":7,"c":1}');
  expect(mergeMembers(known.text, { aa: 1 }, known).text).toBe('{"a":1,"aa":1,"b":2}');
});

test("an object that becomes too large is refused, as when it is encoded", () => {
  const known = mergeMembers("{}", { a: "x".repeat(MAX_PAYLOAD_BYTES - 100) }, undefined);
  expect(decode(mergeMembers(known.text, { b: 1 }, known).text)).toHaveProperty("b", 1);
  expect(() => mergeMembers(known.text, { b: "y".repeat(200) }, known)).toThrow(/bytes or more/);
});
