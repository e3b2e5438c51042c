import { expect, test } from "vitest";
import { decode, drawUnit, encode, MAX_PAYLOAD_BYTES } from "../base/index.ts";
import { applyDelta, type ChannelTexts } from "./checkpoint.ts";
import { layOver } from "./member-texts.ts";

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

test("keys laid over a text give the text of the whole object, whatever the keys and values", () => {
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

test("what is known of another text is not used", () => {
  const known = layOver("{}", { a: 1, b: 2 }, undefined);
  expect(layOver('{"b":7}', { c: 1 }, known).text).toBe('{"b":7,"c":1}');
  expect(layOver(known.text, { aa: 1 }, known).text).toBe('{"a":1,"aa":1,"b":2}');
});

test("an object that becomes too large is refused, as when it is written whole", () => {
  const known = layOver("{}", { a: "x".repeat(MAX_PAYLOAD_BYTES - 100) }, undefined);
  expect(decode(layOver(known.text, { b: 1 }, known).text)).toHaveProperty("b", 1);
  expect(() => layOver(known.text, { b: "y".repeat(200) }, known)).toThrow(/bytes or more/);
});
