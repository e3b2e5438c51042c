import fc from "fast-check";
import { expect, test } from "vitest";
import { RepriseError } from "../../base/index.ts";
import { cellOf, joinCell, stateOfCell, type Cell } from "./cell.ts";
import { linkEnds, linkId, linkText, parseLink, slotOf } from "./link.ts";
import type { LogRecord, RecordBody } from "./record.ts";
import { foldRecords, stateHash, stateHashOf, stateLineOf } from "./state-hash.ts";

const A = "a/00000000000000aa";
const B = "b/00000000000000bb";
const KEY = "0".repeat(64);
const CELL = `a:${KEY}`;

function record(c: number, body: RecordBody, o = A): LogRecord {
  return { c, n: c, o, ...body };
}
const put = (c: number, o = A): LogRecord => record(c, { op: "put", k: KEY }, o);
const tomb = (c: number, o = A): LogRecord => record(c, { op: "tomb", x: CELL }, o);
const erase = (c: number, o = A): LogRecord => record(c, { op: "erase", x: CELL }, o);

function stateAfter(...records: readonly LogRecord[]): string | undefined {
  return stateOfCell(foldRecords(records).get(CELL)!);
}

test("a tombstone hides what is not later, and a later put revives", () => {
  expect(stateAfter(put(1))).toBe("visible");
  expect(stateAfter(put(1), tomb(2))).toBe("hidden");
  expect(stateAfter(put(2), tomb(2, B))).toBe("hidden");
  expect(stateAfter(put(1), tomb(2), put(3))).toBe("visible");
  expect(stateAfter(put(1), tomb(3), put(2, B))).toBe("hidden");
  expect(stateAfter(tomb(3))).toBeUndefined();
});

test("what is erased stays erased, whatever is put later", () => {
  expect(stateAfter(put(1), erase(2), put(9))).toBe("erased");
  expect(stateAfter(erase(2))).toBe("erased");
  expect(stateLineOf(CELL, { erased: true })).toEqual([CELL, "", "erased"]);
});

test("a key record changes no cell", () => {
  expect(cellOf(record(1, { op: "key", v: "x" }))).toBeUndefined();
});

test("a cell is the same in any order of its records and with repeats", () => {
  const records = fc.array(
    fc.tuple(fc.constantFrom(put, tomb, erase), fc.integer({ min: 1, max: 6 }), fc.constantFrom(A, B)),
    { minLength: 1, maxLength: 12 },
  );
  fc.assert(
    fc.property(records, fc.infiniteStream(fc.nat()), (drawn, stream) => {
      const log = drawn.map(([make, c, o]) => make(c, o));
      const shuffled = log
        .flatMap((one) => (stream.next().value! % 3 === 0 ? [one, one] : [one]))
        .map((one) => [stream.next().value!, one] as const)
        .sort(([a], [b]) => a - b)
        .map(([, one]) => one);
      const join = (all: readonly LogRecord[]): Cell => all.reduce(joinCell, undefined as Cell | undefined)!;
      expect(join(shuffled)).toEqual(join(log));
    }),
  );
});

const LINK = { type: "supersedes", from: [KEY], to: ["run:kid-0", `origin:${A}`], v: 1 } as const;

test("the greatest link of a slot wins, and the same link twice is one", () => {
  const slot = slotOf(LINK);
  const ids = ["first", "second"].map((data) => linkId(linkText({ ...LINK, data }))).sort();
  const links = ids.map((k, i) => record(1, { op: "put", k, s: slot }, i === 0 ? B : A));
  const cells = foldRecords([links[1]!, links[0]!, links[1]!]);
  expect([...cells].map(([id, cell]) => stateLineOf(id, cell))).toEqual([[`s:${slot}`, ids[1], "visible"]]);
  expect(slotOf({ ...LINK, type: "retried-as" })).not.toBe(slot);
});

test("the state hash is over sorted lines, and ignores cells that only a tombstone names", () => {
  const lines = [
    ["b", "2", "hidden"],
    ["a", "1", "visible"],
  ] as const;
  expect(stateHash(lines)).toBe(stateHash([...lines].reverse()));
  expect(stateHashOf(foldRecords([tomb(1)]))).toBe(stateHash([]));
});

test("a link is read back from its canonical text, and names the role of each end", () => {
  for (const link of [LINK, { ...LINK, data: { deep: [1, "ä", null] } }, { ...LINK, from: [], to: [] }])
    expect(parseLink(linkText(link))).toEqual(link);
  const roles = linkEnds({ from: [KEY, "run:a", KEY], to: ["run:b", "run:a", "run:b"] });
  expect(Object.fromEntries(roles)).toEqual({ [KEY]: "from", "run:a": "both", "run:b": "to" });
});

test("a link that breaks a limit is refused with LINK_INVALID", () => {
  const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
  const texts = [
    linkText(LINK).replace(":1}", ":2}"),
    linkText(LINK).replace('"v":1', '"v":1,"w":1'),
    linkText(LINK).replace('"from":[', '"from":[ '),
    linkText(LINK).replace(KEY, "key"),
    linkText(LINK).replace("run:kid-0", "run:"),
    linkText(LINK).replace(`origin:${A}`, "origin:../x"),
    linkText(LINK).replace("supersedes", ""),
    `{"data":${deep(300)},"from":[],"to":[],"type":"x","v":1}`,
    `{"data":${deep(100_000)},"from":[],"to":[],"type":"x","v":1}`,
    `{"data":1,"data":1,"from":[],"to":[],"type":"x","v":1}`,
    `{"from":[],"to":[${Array(100_000).fill(`"${KEY}"`).join()}],"type":"x","v":1}`,
    `{"from":[],"to":[${Array(1_025).fill(`"${KEY}"`).join()}],"type":"x","v":1}`,
    "[]",
    "",
  ];
  for (const text of texts)
    expect(() => parseLink(text), text.slice(0, 100)).toThrow(
      expect.objectContaining({ code: "LINK_INVALID", constructor: RepriseError }),
    );
  const most = { ...LINK, to: Array<string>(1_024).fill(KEY) };
  expect(parseLink(linkText(most))).toEqual(most);
});
