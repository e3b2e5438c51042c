import { expect, test } from "vitest";
import { ALONE_AFTER, groupSize, ISOLATED_AFTER, MAX_TAKEOVERS, SUSPECT_AFTER } from "../../kernel/index.ts";
import { suspectGroups, type SampledSuspect } from "./suspect-groups.ts";

const suspects = (count: number, takeovers: number, isHeldBack = false): readonly SampledSuspect[] =>
  Array.from({ length: count }, () => ({ takeovers, isHeldBack }));

test("without suspects there is no group", () => {
  expect(suspectGroups([], 100)).toEqual([]);
  expect(suspectGroups([{ of: "a", suspects: [] }], 100)).toEqual([]);
});

test("a group contains one level, and the highest level comes first", () => {
  const seen = [
    { of: "a", suspects: [...suspects(3, 2), ...suspects(1, 4)] },
    { of: "b", suspects: suspects(2, 3) },
  ];
  expect(suspectGroups(seen, 1_000)).toEqual([
    { level: 4, size: 8, parts: [{ of: "a", limit: 1 }] },
    { level: 3, size: 64, parts: [{ of: "b", limit: 2 }] },
    { level: 2, size: 256, parts: [{ of: "a", limit: 3 }] },
  ]);
});

test("a part selects no more than the group holds, and a group no more than there are tokens", () => {
  const seen = [{ of: "a", suspects: suspects(300, 2) }];
  expect(suspectGroups(seen, 1_000)[0]).toMatchObject({ size: 256, parts: [{ limit: 256 }] });
  expect(suspectGroups(seen, 10)[0]).toMatchObject({ size: 10, parts: [{ limit: 10 }] });
});

test("with each level groups shrink, until a suspect is alone", () => {
  const sizes = Array.from({ length: MAX_TAKEOVERS - SUSPECT_AFTER }, (_, n) => groupSize(SUSPECT_AFTER + n));
  expect(sizes).toEqual(sizes.toSorted((a, b) => b - a));
  for (const level of [ALONE_AFTER, ISOLATED_AFTER, MAX_TAKEOVERS])
    expect(suspectGroups([{ of: "a", suspects: suspects(5, level) }], 100)).toMatchObject([{ level, size: 1 }]);
});

test("a suspect whose queue is full is in no group, but a limit reads past it", () => {
  const held = suspects(4, 3, true);
  expect(suspectGroups([{ of: "a", suspects: held }], 100)).toEqual([]);
  expect(suspectGroups([{ of: "a", suspects: [...held, ...suspects(2, 3)] }], 100)).toEqual([
    { level: 3, size: 64, parts: [{ of: "a", limit: 6 }] },
  ]);
  // Held-back suspects of a level do not make the group of another one larger.
  expect(suspectGroups([{ of: "a", suspects: [...held, ...suspects(2, 2)] }], 100)).toEqual([
    { level: 2, size: 100, parts: [{ of: "a", limit: 2 }] },
  ]);
});
