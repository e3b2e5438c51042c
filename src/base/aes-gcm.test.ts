import { expect, test } from "vitest";
import { aesGcm, RepriseError, type PayloadContext } from "./index.ts";

const ONE = new Uint8Array(32).fill(1);
const TWO = Buffer.alloc(32, 2).toString("base64");
const PLACE: PayloadContext = { run: 7, field: "journal", place: "3" };

function refusalOf(work: () => unknown): RepriseError {
  try {
    work();
  } catch (error) {
    if (error instanceof RepriseError) return error;
  }
  throw new Error("nothing was refused");
}

test("an encrypted text decrypts to itself, and the bytes do not contain it", () => {
  const codec = aesGcm({ keys: { one: ONE }, current: "one" });
  for (const text of ["", "{}", '"ä€😀"', "x".repeat(100_000)]) {
    const bytes = codec.encode(text, PLACE);
    expect(codec.decode(bytes, PLACE)).toBe(text);
    if (text.length > 2) expect(Buffer.from(bytes).includes(text)).toBe(false);
  }
});

test("equal texts encrypt to different bytes each time", () => {
  const codec = aesGcm({ keys: { one: ONE }, current: "one" });
  const seen = new Set(Array.from({ length: 100 }, () => Buffer.from(codec.encode('"same"', PLACE)).toString("hex")));
  expect(seen.size).toBe(100);
});

test("old keys decrypt, and new payloads name the current key", () => {
  const before = aesGcm({ keys: { one: ONE }, current: "one" });
  const after = aesGcm({ keys: { one: ONE, two: TWO }, current: "two" });
  expect(after.decode(before.encode('"old"', PLACE), PLACE)).toBe('"old"');
  const fresh = after.encode('"new"', PLACE);
  expect(after.name).toBe("aes-256-gcm two");
  const refusal = refusalOf(() => before.decode(fresh, PLACE));
  expect(refusal.code).toBe("PAYLOAD_KEY_MISSING");
  expect(refusal.message).toContain("'two'");
  expect(refusal.details).toEqual({ key: "two", keys: ["one"] });
});

test("another key under the same id does not decrypt", () => {
  const bytes = aesGcm({ keys: { one: ONE }, current: "one" }).encode('"x"', PLACE);
  const refusal = refusalOf(() => aesGcm({ keys: { one: TWO }, current: "one" }).decode(bytes, PLACE));
  expect([refusal.code, refusal.details]).toEqual(["PAYLOAD_UNREADABLE", { key: "one" }]);
});

test("a change of any byte is detected", () => {
  const codec = aesGcm({ keys: { one: ONE, ond: TWO }, current: "one" });
  const bytes = codec.encode('{"a":1}', PLACE);
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Uint8Array.from(bytes);
    changed[at]! ^= 1;
    expect(["PAYLOAD_UNREADABLE", "PAYLOAD_KEY_MISSING"]).toContain(refusalOf(() => codec.decode(changed, PLACE)).code);
  }
  for (const length of [0, 1, 2, 5, 20, bytes.length - 1])
    expect(() => codec.decode(bytes.subarray(0, length), PLACE)).toThrow(RepriseError);
});

test("a payload decrypts only at its own place", () => {
  const codec = aesGcm({ keys: { one: ONE }, current: "one" });
  const bytes = codec.encode("{}", PLACE);
  for (const other of [
    { ...PLACE, run: 8 },
    { ...PLACE, place: "4" },
    { ...PLACE, field: "inbox" },
  ])
    expect(refusalOf(() => codec.decode(bytes, other)).code).toBe("PAYLOAD_UNREADABLE");
});

test("wrong options are refused, and the message shows no key", () => {
  const secret = "c2hvcnQ=";
  for (const [options, said] of [
    [undefined, "expected { keys, current }"],
    [{ keys: {}, current: "one" }, "at least one key"],
    [{ keys: { one: ONE }, current: "two" }, "`current` (one), got 'two'"],
    [{ keys: { one: secret }, current: "one" }, "got 5 bytes"],
    [{ keys: { one: 5 }, current: "one" }, "got a number"],
    [{ keys: { "a b": ONE }, current: "a b" }, "without spaces"],
    [{ keys: { one: ONE }, current: "one", key: ONE }, 'no option "key"'],
  ] as const) {
    const refusal = refusalOf(() => aesGcm(options as never));
    expect(refusal.code).toBe("BAD_OPTIONS");
    expect(refusal.message).toContain(said);
    expect(refusal.message).not.toContain(secret);
  }
});
