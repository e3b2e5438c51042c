import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, RepriseError } from "../../base/index.ts";
import { signingKeyOf } from "../../receipts/index.ts";
import { isOrigin, nextEpoch, originParts } from "./origin.ts";
import { compareRecords } from "./record-order.ts";
import { nextRecord, parseRecord, recordText, type ExpectedRecord, type LogRecord } from "./record.ts";

const O = "edge7/56475aa75463474c";
const HUB = "hub/0123456789abcdef";
const key = (digit: string): string => digit.repeat(64);
const PUT: LogRecord = { c: 5, k: key("a"), n: 3, o: O, op: "put" };
const EXPECTED: ExpectedRecord = { origin: O, n: 3, after: 4 };

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return error instanceof RepriseError ? error.code : `not a RepriseError: ${String(error)}`;
  }
}

const hex = (length: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: length, maxLength: length });
const cell = fc.tuple(fc.constantFrom("a", "s"), hex(64)).map(([kind, id]) => `${kind}:${id}`);
const origin = fc.tuple(fc.constantFrom("a", "B.c", "x_y-z"), hex(16)).map(([name, digits]) => `${name}/${digits}`);
const bodies = fc.oneof(
  fc.record({ op: fc.constant("put" as const), k: hex(64) }),
  fc.record({ op: fc.constant("put" as const), k: hex(64), s: hex(64) }),
  fc.record({ op: fc.constantFrom("tomb" as const, "erase" as const), x: cell }),
  fc.record({
    op: fc.constant("key" as const),
    v: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((seed) => signingKeyOf(seed, O).vkey),
  }),
);
const heads = fc.dictionary(
  origin,
  fc.record({ n: fc.integer({ min: 1, max: 2 ** 40 }), c: fc.integer({ min: 1, max: 2 ** 31 }) }),
);

test("a record that its author makes is canonical text that a reader takes", () => {
  fc.assert(
    fc.property(bodies, heads, fc.nat(1000), fc.nat(1000), (body, seen, size, clock) => {
      const record = nextRecord({ origin: O, size, clock: clock + size }, body, seen);
      const text = recordText(record);
      expect(canonicalJson(record)).toBe(text);
      const clockOf = (of: string): number | undefined => seen[of]?.c;
      const expected = { origin: O, n: size + 1, after: clock + size };
      expect(parseRecord(text, { ...expected, clockOf })).toEqual(record);
      // A reader that does not hold the records of `y` takes the record, too.
      expect(parseRecord(text, expected)).toEqual(record);
    }),
  );
});

test("the clock of a record is above that of every record its author has seen", () => {
  const record = nextRecord({ origin: O, size: 2, clock: 4 }, { op: "put", k: key("a") }, { [HUB]: { n: 7, c: 90 } });
  expect(record).toEqual({ ...PUT, c: 91, y: { [HUB]: 7 } });
});

describe("a hostile or damaged record is refused with RECORD_INVALID", () => {
  const refused: Readonly<Record<string, [text: string, expected?: Partial<ExpectedRecord>]>> = {
    "no JSON": ["{"],
    "no object": ["[]"],
    "JSON of 60,000 levels": ["[".repeat(30_000) + "]".repeat(30_000)],
    "levels in y": [
      `{"c":5,"k":"${key("a")}","n":3,"o":"${O}","op":"put","y":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
    ],
    "a record of 65,536 bytes": [" ".repeat(65_536)],
    "the greatest clock": [recordText({ ...PUT, c: 2 ** 53 - 1 })],
    "the greatest clock, with heads that the reader does not hold": [
      recordText({ ...PUT, c: 2 ** 53 - 1, y: { [HUB]: 1 } }),
    ],
    "a jump of more than 2^32": [recordText({ ...PUT, c: 5 + 2 ** 32, y: { [HUB]: 1 } })],
    "a clock above what its author saw": [recordText({ ...PUT, c: 9, y: { [HUB]: 1 } }), { clockOf: () => 7 }],
    "a clock below what its author saw": [recordText({ ...PUT, y: { [HUB]: 1 } }), { clockOf: () => 5 }],
    "a clock that stands still": [recordText({ ...PUT, c: 4 })],
    "a clock that stands still, with heads that the reader does not hold": [
      recordText({ ...PUT, c: 4, y: { [HUB]: 1 } }),
    ],
    "a clock that skips without a reason": [recordText({ ...PUT, c: 6 })],
    "a clock of zero": [recordText({ ...PUT, c: 0 })],
    "a fraction": ['{"c":5.5,"k":"' + key("a") + `","n":3,"o":"${O}","op":"put"}`],
    "a gap": [recordText({ ...PUT, n: 4 })],
    "a repeat": [recordText({ ...PUT, n: 2 })],
    "another origin": [recordText({ ...PUT, o: HUB })],
    "an origin that leaves its folder": [recordText({ ...PUT, o: "../0123456789abcdef" })],
    "an unknown op": [recordText({ ...PUT, op: "drop" as "put" })],
    "an op of the prototype": [recordText({ ...PUT, op: "constructor" as "put" })],
    "a put without a key": [`{"c":5,"n":3,"o":"${O}","op":"put"}`],
    "a tomb with a key": [recordText({ ...PUT, op: "tomb", x: `a:${key("b")}` })],
    "an upper-case key": [recordText({ ...PUT, k: key("A") })],
    "a cell of no kind": [recordText({ c: 5, n: 3, o: O, op: "tomb", x: `b:${key("a")}` })],
    "empty heads": [recordText({ ...PUT, y: {} })],
    "heads of its own log": [recordText({ ...PUT, y: { [O]: 2 } })],
    "heads of no origin": [recordText({ ...PUT, y: { "no origin": 2 } })],
    "a prototype as heads": [`{"c":5,"k":"${key("a")}","n":3,"o":"${O}","op":"put","y":{"__proto__":1}}`],
    "a member that occurs twice": [`{"c":5,"c":5,"k":"${key("a")}","n":3,"o":"${O}","op":"put"}`],
    "another order of members": [`{"k":"${key("a")}","c":5,"n":3,"o":"${O}","op":"put"}`],
    "a space": [`{"c": 5,"k":"${key("a")}","n":3,"o":"${O}","op":"put"}`],
    "an escape": [`{"c":5,"k":"${key("a")}","n":3,"o":"${O}","op":"p\\u0075t"}`],
    "another form of a number": [`{"c":5e0,"k":"${key("a")}","n":3,"o":"${O}","op":"put"}`],
    "an unknown member": [`{"c":5,"k":"${key("a")}","n":3,"o":"${O}","op":"put","z":1}`],
    "a vkey that is none": [recordText({ c: 5, n: 3, o: O, op: "key", v: "edge7" })],
    "a vkey of another origin": [
      recordText({ c: 5, n: 3, o: O, op: "key", v: signingKeyOf(Buffer.alloc(32, 1), "hub").vkey }),
    ],
  };
  for (const [what, [text, expected]] of Object.entries(refused))
    test(what, () => {
      expect(codeOf(() => parseRecord(text, { ...EXPECTED, ...expected }))).toBe("RECORD_INVALID");
    });
  test("and the same record without the fault is taken", () => {
    expect(parseRecord(recordText(PUT), EXPECTED)).toEqual(PUT);
    expect(parseRecord(recordText({ ...PUT, c: 4 + 2 ** 32, y: { [HUB]: 1 } }), EXPECTED).c).toBe(4 + 2 ** 32);
    expect(codeOf(() => recordText({ ...PUT, v: "x".repeat(65_535) }))).toBe("RECORD_INVALID");
  });
});

test("a record with any byte changed is refused, or is another record", () => {
  const text = recordText({ ...PUT, y: { [HUB]: 1 } });
  const taken = new Set<string>();
  for (let at = 0; at < text.length; at += 1)
    for (const other of ['"', "{", "0", "1", "b", "\0", "ä"]) {
      const changed = text.slice(0, at) + other + text.slice(at + 1);
      if (changed === text || codeOf(() => parseRecord(changed, EXPECTED)) === "RECORD_INVALID") continue;
      expect(recordText(JSON.parse(changed) as LogRecord)).toBe(changed);
      taken.add(changed);
    }
  expect(taken.size).toBeGreaterThan(0);
});

test("records have one order: clock, id, origin, compared as bytes", () => {
  const record = (c: number, k: string, o: string): LogRecord => ({ c, k: key(k), n: 1, o, op: "put" });
  const sorted = [
    record(1, "f", HUB),
    record(2, "a", "Z/0123456789abcdef"),
    record(2, "a", O),
    record(2, "a", `${O}/2`),
    record(2, "b", O),
    record(10, "0", O),
  ];
  fc.assert(
    fc.property(fc.shuffledSubarray(sorted, { minLength: sorted.length }), (shuffled) => {
      expect(shuffled.sort(compareRecords)).toEqual(sorted);
    }),
  );
  expect(compareRecords(sorted[0]!, { ...sorted[0]! })).toBe(0);
});

test("an origin continues as its next epoch", () => {
  expect(nextEpoch(O)).toBe(`${O}/2`);
  expect(nextEpoch(`${O}/2`)).toBe(`${O}/3`);
  expect(originParts(`${O}/12`)).toEqual({ name: "edge7", digits: "56475aa75463474c", epoch: 12 });
  for (const text of [
    "edge7",
    `${O}/1`,
    `${O}/0`,
    `${O}/02`,
    `${O}/x`,
    `${O} `,
    `/${O}`,
    "./0123456789abcdef",
    `${O}\n`,
  ])
    expect(isOrigin(text), text).toBe(false);
});
