import fc from "fast-check";
import { expect, test } from "vitest";
import {
  closedCut,
  isClosedCut,
  isInSnapshot,
  parseSnapshot,
  snapshotId,
  snapshotText,
  type SeenOf,
} from "./snapshot.ts";

const [A, B, C] = ["a/00000000000000aa", "b/00000000000000bb", "c/00000000000000cc"] as const;
const ROOT = "0".repeat(64);

test("equal cuts have equal ids, in any order of their origins", () => {
  expect(snapshotId({ [A]: [1, ROOT], [B]: [2, ROOT] })).toBe(snapshotId({ [B]: [2, ROOT], [A]: [1, ROOT] }));
  expect(snapshotId({ [A]: [1, ROOT] })).not.toBe(snapshotId({ [A]: [2, ROOT] }));
  const heads = { [A]: [1, ROOT], [B]: [0, ROOT] } as const;
  expect(parseSnapshot(snapshotText(heads))).toEqual(heads);
});

test("a text that is no snapshot is refused", () => {
  for (const text of [
    "",
    "[]",
    "null",
    '{"heads":[],"v":1}',
    `{"heads":{"${A}":[1]},"v":1}`,
    `{"heads":{"${A}":[-1,"${ROOT}"]},"v":1}`,
    `{"heads":{"x":[1,"${ROOT}"]},"v":1}`,
    `{"heads":{},"v":2}`,
    `{"v":1,"heads":{}}`,
  ])
    expect(() => parseSnapshot(text), text).toThrow(expect.objectContaining({ code: "BAD_FORMAT" }));
});

test("a record is in a snapshot up to the head of its origin", () => {
  const heads = { [A]: [2, ROOT] } as const;
  expect(isInSnapshot(heads, { o: A, n: 2 })).toBe(true);
  expect(isInSnapshot(heads, { o: A, n: 3 })).toBe(false);
  expect(isInSnapshot(heads, { o: B, n: 1 })).toBe(false);
  expect(isInSnapshot(heads, { o: "constructor", n: 1 })).toBe(false);
});

test("the closed cut leaves out what names a record that is not there, and what depends on that", () => {
  const seen: Record<string, ReturnType<SeenOf>> = {
    [A]: [{ n: 3, y: { [B]: 5 } }],
    [B]: [],
    [C]: [
      { n: 2, y: { [A]: 2 } },
      { n: 4, y: { [A]: 3 } },
    ],
  };
  const seenOf: SeenOf = (origin) => seen[origin] ?? [];
  const cut = closedCut(
    new Map([
      [A, 6],
      [B, 4],
      [C, 9],
    ]),
    seenOf,
  );
  expect([...cut]).toEqual([
    [A, 2],
    [B, 4],
    [C, 3],
  ]);
  // An origin that the site does not hold closes nothing.
  expect(closedCut(new Map([[A, 6]]), seenOf).get(A)).toBe(6);
});

test("the closed cut is closed, and the greatest that is", () => {
  const names = [A, B, C];
  const dependency = fc.record({
    of: fc.constantFrom(...names),
    n: fc.integer({ min: 1, max: 4 }),
    on: fc.constantFrom(...names),
    at: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(
      fc.array(dependency, { maxLength: 8 }),
      fc.array(fc.nat(4), { minLength: 3, maxLength: 3 }),
      (all, sizes) => {
        const seenOf: SeenOf = (origin) =>
          all
            .filter(({ of, on }) => of === origin && on !== origin)
            .map(({ n, on, at }) => ({ n, y: { [on]: at } }))
            .sort((a, b) => a.n - b.n);
        const start = new Map(names.map((name, i) => [name, sizes[i]!]));
        const cut = closedCut(start, seenOf);
        expect(isClosedCut(cut, seenOf)).toBe(true);
        for (let a = 0; a <= sizes[0]!; a += 1)
          for (let b = 0; b <= sizes[1]!; b += 1)
            for (let c = 0; c <= sizes[2]!; c += 1) {
              const other = new Map([
                [A, a],
                [B, b],
                [C, c],
              ] as [string, number][]);
              if (isClosedCut(other, seenOf))
                for (const name of names) expect(other.get(name)).toBeLessThanOrEqual(cut.get(name)!);
            }
      },
    ),
  );
});
