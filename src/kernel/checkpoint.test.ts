import { expect, test } from "vitest";
import { decode, drawUnit, encode } from "../base/index.ts";
import { applyDelta, readSnapshot, stateParts, snapshotText } from "./checkpoint.ts";

const NAMES = ["", "$", "$$", "$!", "$a", "10", "9", "é", "\u{1f600}", 'quo"te', "constructor", "a", "b"];

test("the text of a state equals that of the codec for any channel names, and a snapshot decodes to the same texts", () => {
  for (let round = 0; round < 200; round += 1) {
    let draws = 0;
    const below = (most: number): number => Math.floor(drawUnit(3n, `round ${round}`, draws++) * most);
    const set = Object.fromEntries(NAMES.filter(() => below(2) === 0).map((name) => [name, [below(100)]]));
    const texts = applyDelta(new Map(), { set });
    const text = stateParts(texts).join("");
    expect(text).toBe(encode(set));
    expect(decode(text)).toEqual(set);
    const delivered = [{ type: "PromiseResolved", data: { promiseId: "p", value: below(9) } }] as const;
    const whole = readSnapshot(snapshotText(delivered, stateParts(texts)));
    expect(whole).toEqual({ delivered, texts });
    expect([...whole.texts]).toEqual([...texts]);
  }
});
