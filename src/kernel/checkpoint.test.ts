import { expect, test } from "vitest";
import { decode, drawUnit, encode } from "../base/index.ts";
import { applyDelta, readWhole, stateParts, wholeText } from "./checkpoint.ts";

const NAMES = ["", "$", "$$", "$!", "$a", "10", "9", "é", "\u{1f600}", 'quo"te', "constructor", "a", "b"];

test("the text of a state is the codec's for any names of channels, and is read back with the same texts", () => {
  for (let round = 0; round < 200; round += 1) {
    let draws = 0;
    const below = (most: number): number => Math.floor(drawUnit(3n, `round ${round}`, draws++) * most);
    const set = Object.fromEntries(NAMES.filter(() => below(2) === 0).map((name) => [name, [below(100)]]));
    const texts = applyDelta(new Map(), { set });
    const text = stateParts(texts).join("");
    expect(text).toBe(encode(set));
    expect(decode(text)).toEqual(set);
    const told = [{ type: "PromiseResolved", data: { promiseId: "p", value: below(9) } }] as const;
    const whole = readWhole(wholeText(told, stateParts(texts)));
    expect(whole).toEqual({ told, texts });
    expect([...whole.texts]).toEqual([...texts]);
  }
});
