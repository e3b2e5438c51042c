import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson, decode, encode, type PayloadLimits } from "./codec.ts";
import { RepriseError } from "./errors.ts";

function roundTrip<T>(value: T): T {
  const text = encode(value);
  const back = decode(text);
  expect(encode(back)).toBe(text);
  return back as T;
}

function refusal(act: () => unknown): RepriseError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(RepriseError);
    return error as RepriseError;
  }
  throw new Error("expected a refusal");
}

// ── RFC 8785 ──

test("keys are sorted by UTF-16 code units, as in RFC 8785 3.2.3", () => {
  const input = {
    "\u20ac": "Euro Sign",
    "\r": "Carriage Return",
    "\ufb33": "Hebrew Letter Dalet With Dagesh",
    "1": "One",
    "\ud83d\ude00": "Emoji: Grinning Face",
    "\u0080": "Control",
    "\u00f6": "Latin Small Letter O With Diaeresis",
  };
  const expected =
    '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
    '"\u20ac":"Euro Sign","\ud83d\ude00":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}';
  expect(canonicalJson(input)).toBe(expected);
  expect(encode(input)).toBe(expected);
});

test("the example of RFC 8785 3.2.2 is written as printed there", () => {
  const input: unknown = JSON.parse(
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}',
  );
  expect(canonicalJson(input)).toBe(
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

// RFC 8785, appendix B: the bits of a double and its text.
const NUMBERS: readonly [bits: string, text: string][] = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
];

test.each(NUMBERS)("the double %s is written as %s", (bits, text) => {
  const value = Buffer.from(bits, "hex").readDoubleBE();
  expect(canonicalJson(value)).toBe(text);
  if (!Object.is(value, -0)) expect(encode(value)).toBe(text);
});

test("canonicalJson refuses values that JSON lacks", () => {
  const values = [
    Number.NaN,
    Infinity,
    undefined,
    1n,
    new Date(0),
    new Map(),
    new Set(),
    new Uint8Array(),
    new Error("x"),
  ];
  for (const value of values) {
    const error = refusal(() => canonicalJson({ a: [value] }));
    expect(error.code).toBe("NOT_DATA");
    expect(error.message).toMatch(/^\$\.a\[0\]: /);
  }
  expect(refusal(() => canonicalJson("\ud800")).code).toBe("BAD_PAYLOAD");
  expect(canonicalJson({ $: 1, $$: 2 })).toBe('{"$":1,"$$":2}');
});

test("canonicalJson agrees with JSON.parse on every JSON value", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      fc.pre(!JSON.stringify(value).includes("__proto__"));
      const plain: unknown = JSON.parse(JSON.stringify(value));
      expect(JSON.parse(canonicalJson(plain))).toEqual(plain);
    }),
  );
});

// ── round trips ──

test("ACCEPTANCE 39: Date, Map, Set, BigInt, bytes, undefined, -0, NaN and Error decode to themselves", () => {
  expect(roundTrip(new Date(1_700_000_000_123))).toEqual(new Date(1_700_000_000_123));
  expect(roundTrip(new Date(Number.NaN)).getTime()).toBeNaN();
  expect([
    ...roundTrip(
      new Map<unknown, unknown>([
        [{ a: 1 }, new Set([1])],
        ["k", undefined],
      ]),
    ),
  ]).toEqual([
    [{ a: 1 }, new Set([1])],
    ["k", undefined],
  ]);
  expect([...roundTrip(new Set([3, 1, 2]))]).toEqual([3, 1, 2]);
  expect(roundTrip(-12345678901234567890n)).toBe(-12345678901234567890n);
  const bytes = roundTrip(new Uint8Array([0, 255, 7]));
  expect(bytes).toEqual(new Uint8Array([0, 255, 7]));
  expect(Object.getPrototypeOf(bytes)).toBe(Uint8Array.prototype);
  expect(roundTrip(undefined)).toBeUndefined();
  expect(roundTrip(-0)).toBe(-0);
  expect(roundTrip(Number.NaN)).toBeNaN();
  expect(roundTrip([Infinity, -Infinity])).toEqual([Infinity, -Infinity]);
  const error = roundTrip(new TypeError("no", { cause: new RangeError("why") }));
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toBe("no");
  expect(error.cause).toBeInstanceOf(RangeError);
});

test("the text of every tag is fixed", () => {
  expect(encode([1n, new Date(5), new Date(Number.NaN), new Map([["a", 1]]), new Set([1]), Buffer.from("hi")])).toBe(
    '[{"$":"bigint","v":"1"},{"$":"date","v":5},{"$":"date","v":null},{"$":"map","v":[["a",1]]},' +
      '{"$":"set","v":[1]},{"$":"bytes","v":"aGk="}]',
  );
  expect(encode([undefined, -0, Number.NaN, Infinity, -Infinity])).toBe(
    '[{"$":"undefined"},{"$":"number","v":"-0"},{"$":"number","v":"NaN"},' +
      '{"$":"number","v":"Infinity"},{"$":"number","v":"-Infinity"}]',
  );
  expect(encode(new Error("boom"))).toBe('{"$":"error","v":{"message":"boom","name":"Error"}}');
});

test("a property that holds undefined differs from an absent one", () => {
  expect(encode({ a: undefined })).not.toBe(encode({}));
  expect(Object.hasOwn(roundTrip({ a: undefined }), "a")).toBe(true);
});

test("keys made of dollars are ordinary keys", () => {
  for (const value of [
    { $: "bigint", v: "1" },
    { $: 1, "$!": 2, $$: 3, $$$: 4 },
    { $a: 1 },
    { $: { $: { $: null } } },
  ]) {
    expect(roundTrip(value)).toEqual(value);
  }
  expect(encode({ $: 1, "$!": 2 })).toBe('{"$!":2,"$$":1}');
});

test("keys that look like integers are sorted as text", () => {
  expect(encode({ 10: "a", 9: "b" })).toBe('{"10":"a","9":"b"}');
});

test("objects without a prototype and of another realm are plain", async () => {
  const { runInNewContext } = await import("node:vm");
  expect(encode(Object.assign(Object.create(null), { a: 1 }))).toBe('{"a":1}');
  expect(encode(runInNewContext("({ b: [1, { c: 2 }], a: 1 })"))).toBe('{"a":1,"b":[1,{"c":2}]}');
});

test("properties that are not enumerable are not part of the value", () => {
  const value = Object.defineProperty({ a: 1 }, "hidden", { value: () => 1, enumerable: false });
  expect(encode(value)).toBe('{"a":1}');
});

const anyString = fc.string({ unit: "binary" });
const anyKey = fc
  .oneof(anyString, fc.constantFrom("$", "$$", "$!", "$a", "v", "constructor", "toString", "1", "10"))
  .filter((key) => key !== "__proto__");
const { anyValue } = fc.letrec<{ anyValue: unknown }>((tie) => ({
  anyValue: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(
      anyString,
      fc.double(),
      fc.integer(),
      fc.boolean(),
      fc.bigInt(),
      fc.date({ noInvalidDate: false }),
      fc.uint8Array(),
      fc.constantFrom(null, undefined, -0, "\u2028", '"$', "\\u0024"),
    ),
    fc.array(tie("anyValue"), { maxLength: 5 }),
    fc.dictionary(anyKey, tie("anyValue"), { maxKeys: 5 }),
    fc.array(tie("anyValue"), { maxLength: 4 }).map((items) => new Set(items)),
    fc.array(fc.tuple(tie("anyValue"), tie("anyValue")), { maxLength: 4 }).map((pairs) => new Map(pairs)),
    fc
      .record({
        name: anyString,
        message: anyString,
        cause: tie("anyValue"),
        data: fc.dictionary(anyKey, tie("anyValue"), { maxKeys: 3 }),
      })
      .map(({ name, message, cause, data }) => {
        const error = new Error(message, { cause });
        for (const key of Object.keys(data)) {
          if (key === "constructor") continue;
          Object.defineProperty(error, key, { value: data[key], enumerable: true, configurable: true, writable: true });
        }
        return Object.defineProperty(error, "name", { value: name, enumerable: false });
      }),
  ),
}));

test("every data value decodes to an equal value, and its text is a fixed point", () => {
  fc.assert(
    fc.property(anyValue, (value) => {
      const back = roundTrip(value);
      expect(back).toEqual(value);
    }),
    { numRuns: 1_000 },
  );
});

test("the order in which keys were added does not change the text", () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyKey, { maxLength: 8 }), fc.infiniteStream(fc.nat()), (keys, order) => {
      const shuffled = keys
        .map((key) => ({ key, rank: order.next().value }))
        .sort((a, b) => Number(a.rank) - Number(b.rank));
      const one = Object.fromEntries(keys.map((key) => [key, key]));
      const other = Object.fromEntries(shuffled.map(({ key }) => [key, key]));
      expect(encode(other)).toBe(encode(one));
    }),
  );
});

// ── refusals ──

class Account {
  owner = "a";
}
class Bag extends Map<string, string> {}
class Row extends Array<number> {}
const cycle: Record<string, unknown> = { name: "x" };
cycle["self"] = [cycle];

const REFUSED: readonly [what: string, value: unknown, code: string, path: string, says: RegExp][] = [
  ["a function", { items: [0, 1, 2, { name: function charge() {} }] }, "NOT_DATA", "$.items[3].name", /charge/],
  ["a symbol", { a: Symbol("s") }, "NOT_DATA", "$.a", /symbol/],
  ["a symbol key", { a: { [Symbol("s")]: 1 } }, "NOT_DATA", "$.a[Symbol(s)]", /symbol key/],
  ["a cycle", cycle, "NOT_DATA", "$.self[0]", /cycle/],
  ["a class instance", { a: new Account() }, "NOT_DATA", "$.a", /Account/],
  ["a class that extends Map", new Bag(), "NOT_DATA", "$", /Bag/],
  ["a class that extends Array", new Row(), "NOT_DATA", "$", /Row/],
  ["a Promise", { a: Promise.resolve() }, "NOT_DATA", "$.a", /Promise/],
  ["a RegExp", [/x/], "NOT_DATA", "$[0]", /RegExp/],
  ["another typed array", [new Uint16Array(1)], "NOT_DATA", "$[0]", /Uint16Array/],
  ["a hole", { a: [1, , 3] }, "NOT_DATA", "$.a[1]", /hole/], // oxlint-disable-line no-sparse-arrays
  [
    "a getter",
    {
      a: {
        get b() {
          return 1;
        },
      },
    },
    "NOT_DATA",
    "$.a.b",
    /getter/,
  ],
  ["a setter", { a: { set b(_: number) {} } }, "NOT_DATA", "$.a.b", /setter/],
  ["a toJSON method", { a: { toJSON: () => 1 } }, "NOT_DATA", "$.a.toJSON", /function/],
  ["a lone surrogate", { a: "x\ud800" }, "BAD_PAYLOAD", "$.a", /surrogate/],
  ["a lone surrogate in a long string", "x".repeat(100) + "\udc00", "BAD_PAYLOAD", "$", /surrogate/],
  ["a lone surrogate in a key", { "\udfff": 1 }, "BAD_PAYLOAD", '$["\\udfff"]', /surrogate/],
  ["a __proto__ key", { a: JSON.parse('{"__proto__":1}') as unknown }, "BAD_PAYLOAD", "$.a.__proto__", /__proto__/],
  ["a function in a map", new Map([["k", () => 1]]), "NOT_DATA", "$.values()[0]", /function/],
  ["a function as key of a map", { m: new Map([[() => 1, 1]]) }, "NOT_DATA", "$.m.keys()[0]", /function/],
  ["a function in a set", new Set([1, () => 1]), "NOT_DATA", "$.values()[1]", /function/],
  ["a key that is no identifier", { "a b": () => 1 }, "NOT_DATA", '$["a b"]', /function/],
];

test.each(REFUSED)("%s is refused with its path", (_what, value, code, path, says) => {
  const error = refusal(() => encode(value));
  expect(error.code).toBe(code);
  expect(error.message.startsWith(`${path}: `), error.message).toBe(true);
  expect(error.message).toMatch(says);
  expect(error.details).toEqual({ path });
});

test("the same object twice is not a cycle", () => {
  const shared = { a: 1 };
  expect(encode([shared, shared])).toBe('[{"a":1},{"a":1}]');
});

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 0;
  for (let index = 0; index < depth; index++) value = wrap(value);
  return value;
}

test("a value may be 256 levels deep and no deeper", () => {
  const wraps: ((inner: unknown) => unknown)[] = [
    (inner) => [inner],
    (inner) => ({ a: inner }),
    (inner) => ({ $: inner }),
    (inner) => new Map([[1, inner]]),
    (inner) => new Map([[inner, 1]]),
    (inner) => new Set([inner]),
  ];
  for (const wrap of wraps) {
    roundTrip(nested(256, wrap));
    expect(refusal(() => encode(nested(257, wrap))).code).toBe("PAYLOAD_TOO_DEEP");
  }
  roundTrip(nested(256, (inner) => new Error("x", { cause: inner })));
});

test("a value a million deep is refused without overflowing the stack", () => {
  expect(refusal(() => encode(nested(1_000_000, (inner) => [inner]))).code).toBe("PAYLOAD_TOO_DEEP");
  expect(refusal(() => encode(nested(1_000_000, (inner) => ({ a: inner })))).code).toBe("PAYLOAD_TOO_DEEP");
  const deepError = nested(10_000, (inner) => new Error("x", { cause: inner }));
  expect(encode(deepError)).toContain('"name":"Error"');
  expect(refusal(() => decode("[".repeat(1_000_000) + "]".repeat(1_000_000))).code).toBe("BAD_PAYLOAD");
  expect(refusal(() => decode('{"a":'.repeat(1_000_000) + "0" + "}".repeat(1_000_000))).code).toBe("BAD_PAYLOAD");
});

test("the depth limit can be lowered, but not raised", () => {
  expect(refusal(() => encode([[[0]]], { maxDepth: 2 })).code).toBe("PAYLOAD_TOO_DEEP");
  expect(
    refusal(() =>
      encode(
        nested(300, (inner) => [inner]),
        { maxDepth: 1_000 },
      ),
    ).code,
  ).toBe("PAYLOAD_TOO_DEEP");
});

test("size counts UTF-8 bytes, and the limit is inclusive", () => {
  const sizes: [unknown, PayloadLimits][] = [
    ["é".repeat(10), { maxBytes: 22 }],
    [["a", "b"], { maxBytes: 9 }],
    [{ a: "xyz" }, { maxBytes: 11 }],
    [new Map([["a", 1]]), { maxBytes: 25 }],
  ];
  for (const [value, limits] of sizes) {
    expect(Buffer.byteLength(encode(value, limits))).toBe(limits.maxBytes);
    const error = refusal(() => encode(value, { maxBytes: limits.maxBytes! - 1 }));
    expect(error.code).toBe("PAYLOAD_TOO_LARGE");
  }
  encode("x".repeat(8 * 1024 * 1024 - 2));
  expect(refusal(() => encode("x".repeat(8 * 1024 * 1024 - 1))).code).toBe("PAYLOAD_TOO_LARGE");
  expect(refusal(() => encode(new Uint8Array(64 * 1024 * 1024))).code).toBe("PAYLOAD_TOO_LARGE");
});

test("a small value that expands exponentially is refused before it fills the memory", () => {
  const bomb = nested(60, (inner) => [inner, inner]);
  expect(refusal(() => encode(bomb, { maxBytes: 100_000 })).code).toBe("PAYLOAD_TOO_LARGE");
  expect(refusal(() => encode(new Error("x", { cause: bomb }), { maxBytes: 100_000 })).code).toBe("PAYLOAD_TOO_LARGE");
});

// ── decoding what others wrote ──

const MALFORMED: readonly string[] = [
  "",
  "{",
  "nul",
  '{"$":"regexp","v":"x"}',
  '{"$":1,"v":1}',
  '{"$":"bigint"}',
  '{"$":"bigint","v":"1","w":2}',
  '{"$":"bigint","w":"1"}',
  '{"$":"bigint","v":"01"}',
  '{"$":"bigint","v":"-0"}',
  '{"$":"bigint","v":1}',
  '{"$":"number","v":"1"}',
  '{"$":"date","v":"0"}',
  '{"$":"date","v":8640000000000001}',
  '{"$":"bytes","v":"a"}',
  '{"$":"bytes","v":"####"}',
  '{"$":"map","v":[[1]]}',
  '{"$":"map","v":{}}',
  '{"$":"set","v":1}',
  '{"$":"undefined","v":null}',
  '{"$":"error","v":[]}',
  '{"$":"error","v":{"name":"Error"}}',
  '{"$":"error","v":{"message":"x","name":"Error","stack":"here"}}',
  '{"$":"error","v":{"errors":1,"message":"x","name":"AggregateError"}}',
  '{"$":"error","v":{"data":1,"message":"x","name":"Error"}}',
  '"\\ud800"',
  '["\\ud800"]',
  '{"\\ud800":1}',
  '{"__proto__":1}',
  '{"a":[{"__proto__":{"polluted":true}}]}',
  '{"\\u005f_proto__":1}',
  '{"\\u0024":"regexp","v":1}',
  '{"$":"error","v":{"data":{"__proto__":{"polluted":true}},"message":"x","name":"Error"}}',
  "\ud800",
];

test.each(MALFORMED)("the text %j is refused as BAD_PAYLOAD", (text) => {
  expect(refusal(() => decode(text)).code).toBe("BAD_PAYLOAD");
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("a refusal by decode names the path", () => {
  expect(refusal(() => decode('{"a":[0,{"$":"nope","v":1}]}')).message).toMatch(/^\$\.a\[1\]: unknown tag "nope"/);
});

test("keys such as constructor and prototype are data and change nothing", () => {
  const back = roundTrip({ constructor: { prototype: { polluted: true } }, prototype: 1, toString: "x", $: 0 });
  expect(back.constructor).toEqual({ prototype: { polluted: true } });
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});
