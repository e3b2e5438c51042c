import { expect, test } from "vitest";
import { cutText, shortestPart } from "./parts.ts";

function partsOf(text: string, shortest = shortestPart(text.length)): readonly string[] {
  const ends = cutText(text, shortest);
  return ends.map((end, at) => text.slice(at === 0 ? 0 : ends[at - 1], end));
}

const words = (seed: number, length: number): string => {
  let text = "";
  for (let at = 0; text.length < length; at += 1) text += `${(seed * 7_919 + at * 104_729) % 99_991} `;
  return text.slice(0, length);
};
const message = (seed: number): object => ({ role: "user", content: [{ type: "text", text: words(seed, 900) }] });
const rows = (count: number): object[] => Array.from({ length: count }, (_, at) => ({ at, name: `row ${at}` }));

test("the parts of a text are the text, also without a brace or a quote, and never half of a pair", () => {
  const texts = ["", "x", words(1, 100_000), JSON.stringify(rows(5_000)), "}".repeat(70_000), '"'.repeat(5_000)];
  texts.push(
    "\u{1f600}".repeat(40_000),
    `"a${"\u{1f600}".repeat(40_000)}"`,
    '\\"'.repeat(9_000),
    `[${"1,".repeat(30_000)}1]`,
  );
  for (const text of texts) {
    const parts = partsOf(text);
    expect(parts.join("")).toBe(text);
    expect(parts.every((part) => part.length > 0 && part.isWellFormed())).toBe(true);
  }
});

test("a list with one more element has the parts of the shorter list, but for its end", () => {
  const list = Array.from({ length: 40 }, (_, at) => message(at));
  const known = new Set(partsOf(JSON.stringify({ a: 1, prompt: list, z: 2 })));
  const added = partsOf(JSON.stringify({ a: 1, prompt: [...list, message(99)], z: 2 }));
  const fresh = added.filter((part) => part.length >= 200 && !known.has(part));
  expect(fresh).toEqual([words(99, 900)]);
});

test("a list without its first element has the other parts", () => {
  const list = rows(2_000);
  const known = new Set(partsOf(JSON.stringify(list)));
  const fresh = partsOf(JSON.stringify(list.slice(1))).filter((part) => !known.has(part));
  expect(fresh.join("").length).toBeLessThan(10_000);
});

test("a long string is a part wherever it stands, also with escaped quotes", () => {
  const text = `${words(3, 700)} "quoted" \\ ${words(4, 700)}`;
  const inside = JSON.stringify(text).slice(1, -1);
  for (const value of [[text], { answer: text }, { messages: [{ x: 1 }, { content: text, y: [] }] }])
    expect(partsOf(JSON.stringify(value))).toContain(inside);
});

test("a text of any length has a few thousand parts at most", () => {
  for (const count of [1_000, 100_000, 250_000])
    expect(partsOf(JSON.stringify(rows(count))).length).toBeLessThan(2_200);
  const text = words(5, 6_000_000);
  expect(partsOf(text).length).toBeLessThan(2_200);
});
