import { SERVER_ERRORS } from "./server-errors.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  backoffMs,
  CancelledError,
  checkName,
  checkRetryPolicy,
  checkRunId,
  digest,
  digestOf,
  drawInt,
  drawUnit,
  drawUuid,
  ERROR_CATALOGUE,
  FatalError,
  formatMs,
  invariant,
  InvariantError,
  RepriseError,
  RetryLaterError,
  seedOf,
  sha256Hex,
  systemClock,
  systemRandom,
  systemTimers,
  toMs,
  type Duration,
  type RetryPolicy,
} from "./index.ts";

// ── errors ──

test("an error has a code, names who must act, and keeps its cause", () => {
  const cause = new Error("disk");
  const error = new RepriseError("STORE_IO", "cannot write", { cause, details: { path: "x" } });
  expect(error).toMatchObject({ name: "RepriseError", code: "STORE_IO", family: "store", details: { path: "x" } });
  expect(error.cause).toBe(cause);
  expect(String(error)).toBe("RepriseError: cannot write");
  expect("cause" in new RepriseError("USAGE", "x")).toBe(false);
  expect(Object.keys(new RepriseError("USAGE", "x"))).toEqual(["code"]);
});

test("every error class has its own name and code", () => {
  expect(new FatalError("x")).toMatchObject({ name: "FatalError", code: "FATAL", family: "outcome" });
  expect(new CancelledError()).toMatchObject({ name: "CancelledError", code: "CANCELLED" });
  expect(new RetryLaterError("2 minutes")).toMatchObject({
    name: "RetryLaterError",
    code: "RETRY_LATER",
    afterMs: 120_000,
  });
  expect(new InvariantError("x")).toMatchObject({ name: "InvariantError", code: "INVARIANT", family: "invariant" });
});

test("every code says what happened and what to do next, in sentences", () => {
  for (const { summary, next } of Object.values(ERROR_CATALOGUE)) {
    expect(summary).toMatch(/^\S.*\.$/);
    expect(next).toMatch(/^\S.*\.$/);
  }
});

test("the catalogue is sorted by family, and by code within a family", () => {
  const order = ["usage", "determinism", "store", "outcome", "federation", "invariant"];
  // The codes of the server are a file of their own, behind the other codes of their family.
  const ranks = Object.entries(ERROR_CATALOGUE).map(
    ([code, { family }]) => `${order.indexOf(family)} ${code in SERVER_ERRORS ? "server" : "any"} ${code}`,
  );
  expect(ranks).toEqual(ranks.toSorted());
});

test("an invariant that holds does nothing; one that fails throws its details", () => {
  invariant(true, "fine");
  expect(() => invariant(false, "broken", { seq: 3 })).toThrow(InvariantError);
});

// ── durations ──

test.each<[Duration, number]>([
  [0, 0],
  [1_500, 1_500],
  ["500ms", 500],
  ["30 s", 30_000],
  ["1.5s", 1_500],
  ["1.1 s", 1_100],
  ["2m", 120_000],
  ["1 hour", 3_600_000],
  ["3 days", 259_200_000],
  ["1 week", 604_800_000],
])("%j is %d ms", (duration, ms) => {
  expect(toMs(duration)).toBe(ms);
});

test.each([
  -1,
  1.5,
  Number.NaN,
  Infinity,
  2 ** 53,
  "",
  "5",
  "5 parsecs",
  "-5s",
  "1e3s",
  "0.5ms",
  " 5s",
  "5s ",
  "5  s",
  "5toString",
  null,
  {},
])("%j is not a duration", (duration) => {
  expect(() => toMs(duration as Duration, "timeout of charge")).toThrow(
    expect.objectContaining({ code: "BAD_DURATION", message: expect.stringContaining("timeout of charge") }),
  );
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [999.7, "1 s"],
  [1_200, "1.2 s"],
  [59_960, "1 m"],
  [184_000, "3 m 4 s"],
  [7_200_000, "2 h"],
  [172_800_000, "2 d"],
  [180_000_000, "2 d 2 h"],
  [-1_500, "-1.5 s"],
])("%d ms is shown as %s", (ms, text) => {
  expect(formatMs(ms)).toBe(text);
});

// ── hashes and randomness ──

test("a digest is SHA-256 of the UTF-8 bytes", () => {
  const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  expect(sha256Hex("")).toBe(empty);
  expect(digest("")).toBe(`sha256:${empty}`);
  expect(sha256Hex("é")).toBe(sha256Hex(new Uint8Array([0xc3, 0xa9])));
});

test("digestOf hashes exactly the documented bytes", () => {
  expect(digestOf("reprise/x/v1", "run-1", 7, "é", 8n)).toBe(sha256Hex("12:reprise/x/v15:run-11:72:é1:8"));
});

test("the parts of a digest are unambiguous", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.string()), (one, other) => {
      fc.pre(JSON.stringify(one) !== JSON.stringify(other));
      expect(digestOf("d", ...one)).not.toBe(digestOf("d", ...other));
    }),
  );
});

test("the seed is the first 8 bytes of SHA-256 of the run id, as a signed number", () => {
  for (const id of ["run-1", "run-2", "ü"]) {
    expect(seedOf(id)).toBe(Buffer.from(sha256Hex(id), "hex").readBigInt64BE());
  }
});

test("a draw depends on seed, path and index, and on nothing else", () => {
  const seed = seedOf("run-1");
  expect(drawUnit(seed, "a", 0)).toBe(drawUnit(seed, "a", 0));
  const draws = new Set([
    drawUnit(seed, "a", 0),
    drawUnit(seed, "a", 1),
    drawUnit(seed, "b", 0),
    drawUnit(seedOf("run-2"), "a", 0),
  ]);
  expect(draws.size).toBe(4);
});

test("the first draws of run-1 never change", () => {
  const seed = seedOf("run-1");
  expect([seed, drawUnit(seed, "a", 0), drawUuid(seed, "a", 0), drawInt(seed, "a", 0, 6)]).toMatchInlineSnapshot(`
    [
      5649154386500085045n,
      0.653531217832809,
      "566a8595-3f71-4953-a4cc-64fea4b72cb9",
      3,
    ]
  `);
});

test("draws are in range and evenly distributed", () => {
  const counts = Array.from({ length: 10 }, () => 0);
  for (let index = 0; index < 5_000; index++) {
    const unit = drawUnit(1n, "p", index);
    expect(unit).toBeGreaterThanOrEqual(0);
    expect(unit).toBeLessThan(1);
    counts[drawInt(1n, "p", index, 10)]! += 1;
  }
  for (const count of counts) expect(Math.abs(count - 500)).toBeLessThan(120);
});

test("a drawn UUID has the layout of version 4", () => {
  for (let index = 0; index < 50; index++) {
    expect(drawUuid(-5n, "p", index)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

// ── backoff ──

const POLICY: RetryPolicy = { maxAttempts: 10, baseDelay: "1 s", maxDelay: "30 s" };

test("ACCEPTANCE 5: delays double with jitter below one base, end exactly at the maximum, and follow the run id", () => {
  const delays = (runId: string): number[] =>
    [0, 1, 2, 3, 4, 5, 63, 64, 200].map((attempt) =>
      backoffMs(POLICY, attempt, drawUnit(seedOf(runId), "charge", attempt)),
    );
  for (let run = 0; run < 200; run++) {
    const [d0, d1, d2, d3, d4, ...rest] = delays(`run-${run}`);
    for (const [delay, from] of [
      [d0, 1],
      [d1, 2],
      [d2, 4],
      [d3, 8],
      [d4, 16],
    ] as [number, number][]) {
      expect(delay).toBeGreaterThanOrEqual(from * 1_000);
      expect(delay).toBeLessThan((from + 1) * 1_000);
    }
    expect(rest).toEqual([30_000, 30_000, 30_000, 30_000]);
  }
  expect(delays("run-1")).toEqual(delays("run-1"));
  expect(delays("run-1")).not.toEqual(delays("run-2"));
  expect(backoffMs(POLICY, 0, 1 - 2 ** -53)).toBe(1_999);
});

test("a delay is whole and never above the maximum, whatever the policy", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2 ** 40 }),
      fc.integer({ min: 0, max: 2 ** 40 }),
      fc.nat({ max: 2_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (baseDelay, more, attempt, jitter) => {
        const delay = backoffMs({ maxAttempts: 1, baseDelay, maxDelay: baseDelay + more }, attempt, jitter);
        expect(Number.isSafeInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(baseDelay);
        expect(delay).toBeLessThanOrEqual(baseDelay + more);
      },
    ),
  );
});

test("the default delays go from 1 s to 60 s, and a longer base is its own maximum", () => {
  expect(backoffMs({ maxAttempts: 3 }, 0, 0)).toBe(1_000);
  expect(backoffMs({ maxAttempts: 3 }, 99, 0)).toBe(60_000);
  expect(backoffMs({ maxAttempts: 3, baseDelay: "5 m" }, 3, 0)).toBe(300_000);
  checkRetryPolicy({ maxAttempts: 3, baseDelay: "5 m" }, "x");
});

test.each([
  [{ maxAttempts: 0 }],
  [{ maxAttempts: 1.5 }],
  [{}],
  [undefined],
  [{ maxAttempts: 1, baseDelay: 0 }],
  [{ maxAttempts: 1, baseDelay: "soon" }],
  [{ maxAttempts: 1, maxDelay: -1 }],
  [{ maxAttempts: 1, baseDelay: "2 s", maxDelay: "1 s" }],
  [{ maxAttempts: 1, retryable: true }],
])("the policy %j is refused", (policy) => {
  expect(() => checkRetryPolicy(policy as unknown as RetryPolicy, "task charge")).toThrow(
    expect.objectContaining({ code: "BAD_POLICY", message: expect.stringContaining("task charge") }),
  );
});

// ── names ──

test("a name or id is any well-formed text without control characters", () => {
  expect(checkName("überweisung 🚀", "task name")).toBe("überweisung 🚀");
  expect(checkRunId("a".repeat(255))).toHaveLength(255);
});

test.each(["", "a".repeat(256), "a\nb", "a\u007fb", "\ud800", 7, null, undefined, {}])(
  "%j is neither a name nor an id",
  (text) => {
    expect(() => checkName(text, "task name")).toThrow(expect.objectContaining({ code: "BAD_NAME" }));
    expect(() => checkName(text, "task name")).toThrow(/task name/);
    expect(() => checkRunId(text)).toThrow(expect.objectContaining({ code: "BAD_ID" }));
  },
);

// ── the machine ──

test("the system clock returns whole milliseconds, and its monotonic time never goes backwards", () => {
  expect(Number.isSafeInteger(systemClock.now())).toBe(true);
  const before = systemClock.monotonic();
  expect(systemClock.monotonic()).toBeGreaterThanOrEqual(before);
});

test("a timer fires once, a cancelled one never, and a timer for next year does not fire today", async () => {
  const fired: string[] = [];
  const cancelYear = systemTimers.set(365 * 86_400_000, () => fired.push("year"), { ref: false });
  systemTimers.set(1, () => fired.push("cancelled"))();
  await new Promise<void>((resolve) => {
    systemTimers.set(5, () => {
      fired.push("due");
      resolve();
    });
  });
  cancelYear();
  expect(fired).toEqual(["due"]);
});

test("soon runs after the callbacks of all settled promises", async () => {
  const order: string[] = [];
  const done = new Promise<void>((resolve) =>
    systemTimers.soon(() => {
      order.push("soon");
      resolve();
    }),
  );
  let settled = Promise.resolve();
  for (let index = 0; index < 20; index++) settled = settled.then(() => void order.push("promise"));
  await done;
  expect(order).toEqual([...Array.from({ length: 20 }, () => "promise"), "soon"]);
});

test("random ids are UUIDs of version 7 that ascend with time, tokens have 128 bits", () => {
  expect(systemRandom.id()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const stamp = Number.parseInt(systemRandom.id().replaceAll("-", "").slice(0, 12), 16);
  expect(Math.abs(stamp - systemClock.now())).toBeLessThan(5_000);
  expect(new Set(Array.from({ length: 1_000 }, () => systemRandom.id())).size).toBe(1_000);
  expect(systemRandom.token()).toMatch(/^[0-9a-f]{32}$/);
  expect(systemRandom.bytes(5)).toHaveLength(5);
});
