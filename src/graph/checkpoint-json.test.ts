import { expect, test } from "vitest";
import { drawUnit, encode, RepriseError } from "../base/index.ts";
import type { Checkpoint, WorkItem } from "./checkpoint-view.ts";
import { checkpointFromJson, checkpointToJson, workItemFromJson, workItemToJson } from "./checkpoint-json.ts";
import { checkpointKeyOf } from "./checkpoint-key.ts";
import type { OrderKey, Path } from "./order-key.ts";

/** As seed 000 has it, byte for byte. */
const ITEM = `{
  "step_id": 42,
  "order_key": 18446744073709551615,
  "node_id": "process_query",
  "state": {"query": "hello", "counter": 5},
  "attempt": 0,
  "parent_node_id": "input_validator",
  "edge_index": 0
}`;

/** As seed 000 has it, with a state where it says `{...}`. */
const CHECKPOINT = `{
  "run_id": "run-2025-001",
  "step_id": 10,
  "state": {"query": "result", "counter": 10},
  "frontier": [
    {"step_id": 11, "order_key": 12345, "node_id": "summarize", "state": {"query": "result", "counter": 10}, "attempt": 0}
  ],
  "rng_seed": 42,
  "recorded_ios": [
    {
      "node_id": "call_llm",
      "attempt": 0,
      "request": {"prompt": "hello"},
      "response": {"text": "Hi there!"},
      "hash": "sha256:abc123...",
      "timestamp": "2025-10-28T10:30:00Z",
      "duration_ms": 250
    }
  ],
  "idempotency_key": "sha256:def456...",
  "timestamp": "2025-10-28T10:30:01Z",
  "label": "before_summary"
}`;

const keyWith = (orderKey: bigint): string =>
  checkpointKeyOf(
    "run-001",
    1,
    [{ node: "process_query", orderKey: orderKey.toString(16).padStart(16, "0") as OrderKey, path: "" as Path }],
    ['{"query":"hello"}'],
  );

test("max uint64: the seed's work item is read and written with its order key exact, and its key is the vector", () => {
  const item = workItemFromJson(ITEM);
  expect(item).toEqual({
    step: 42,
    orderKey: 18446744073709551615n,
    node: "process_query",
    state: { query: "hello", counter: 5 },
    attempt: 0,
    parentNode: "input_validator",
    edgeIndex: 0,
  });
  const text = workItemToJson(item);
  expect(text).toContain('"order_key":18446744073709551615,');
  expect(workItemFromJson(text)).toEqual(item);
  const vector = "sha256:6753a69ca8b6ca0501a3012de136dd61f57e9c06847e085524384a3a88933604";
  expect(keyWith(item.orderKey)).toBe(vector);
  // With plain JSON.parse the digits are lost.
  const plain = (JSON.parse(ITEM) as { order_key: number }).order_key;
  expect(JSON.stringify(plain)).not.toBe("18446744073709551615");
  expect(keyWith(BigInt(plain))).not.toBe(vector);
});

test("the seed's checkpoint is read with its nine fields, and written again as the same text", () => {
  const checkpoint = checkpointFromJson(CHECKPOINT);
  expect(checkpoint).toMatchObject({
    runId: "run-2025-001",
    step: 10,
    state: { query: "result", counter: 10 },
    frontier: [{ step: 11, orderKey: 12345n, node: "summarize", attempt: 0, parentNode: "", edgeIndex: 0 }],
    rngSeed: 42n,
    recordedIO: [{ node: "call_llm", attempt: 0, call: 0, request: { prompt: "hello" }, durationMs: 250 }],
    idempotencyKey: "sha256:def456...",
    timestamp: new Date("2025-10-28T10:30:01Z"),
    label: "before_summary",
  });
  const text = checkpointToJson(checkpoint);
  expect(checkpointFromJson(text)).toEqual(checkpoint);
  const [before, after] = [JSON.parse(CHECKPOINT), JSON.parse(text)] as Record<string, unknown>[];
  expect(after).toMatchObject(before!);
});

test("a wide frontier need not repeat the state, and its items are read back with it", () => {
  const checkpoint = checkpointFromJson(CHECKPOINT);
  const text = checkpointToJson(checkpoint, { itemState: false });
  expect(text.match(/"counter":10/g)).toHaveLength(1);
  expect(checkpointFromJson(text)).toEqual(checkpoint);
});

test("a written value is read back equal, and gives the same text again", () => {
  const texts = ["", "a", "é\u{1f600}", 'quo"te', "$", "\n", "__proto", "toString"];
  for (let round = 0; round < 300; round += 1) {
    let draws = 0;
    const below = (most: number): number => Math.floor(drawUnit(11n, `round ${round}`, draws++) * most);
    const pick = <T>(from: readonly T[]): T => from[below(from.length)]!;
    const bits = (): bigint => BigInt.asUintN(64, BigInt(below(2 ** 32)) * BigInt(below(2 ** 32)) * BigInt(below(3)));
    const value = (depth: number): unknown => {
      const kinds: readonly (() => unknown)[] = [
        () => pick(texts),
        () => below(1_000) / 7,
        () => pick([0, -1, 2 ** 53 - 1, -(2 ** 53) + 1, 1e21, 5e-324, Number.NaN, -0]),
        () => pick([true, null, undefined, 12n ** 30n]),
        () => new Date(below(2 ** 40)),
        () => (depth === 0 ? 0 : Array.from({ length: below(4) }, () => value(depth - 1))),
        () =>
          depth === 0 ? 0 : Object.fromEntries(Array.from({ length: below(4) }, () => [pick(texts), value(depth - 1)])),
        () => (depth === 0 ? 0 : new Map([[pick(texts), value(depth - 1)]])),
      ];
      return pick(kinds)();
    };
    const state = value(4);
    const item = (): WorkItem => ({
      step: below(100),
      orderKey: bits(),
      node: pick(["a", "é"]),
      state: below(2) === 0 ? state : value(2),
      attempt: below(3),
      parentNode: pick(["", "a"]),
      edgeIndex: below(5),
      ...(below(2) === 0 && { spreadIndex: below(9), item: value(2) }),
    });
    const checkpoint: Checkpoint = {
      runId: pick(["r", "run 1", "é"]),
      step: below(100),
      state,
      frontier: Array.from({ length: below(4) }, item),
      rngSeed: BigInt.asIntN(64, bits()),
      recordedIO: Array.from({ length: below(3) }, (_, call) => ({
        step: below(100),
        node: pick(["a", "b"]),
        path: pick([undefined, "00ff"]),
        attempt: below(3),
        call,
        name: pick(["", "llm"]),
        ...(below(2) === 0 && { request: value(2) }),
        ...(below(2) === 0 ? { response: value(2) } : { error: new Error("no") }),
        hash: "sha256:00",
        at: new Date(below(2 ** 40)),
        durationMs: pick([undefined, 0, 1.5]),
      })),
      idempotencyKey: "sha256:1",
      timestamp: new Date(below(2 ** 40)),
      ...(below(2) === 0 && { label: "l" }),
    };
    const text = checkpointToJson(checkpoint);
    const again = checkpointFromJson(text);
    // What JSON cannot say is compared by its canonical text.
    expect(encode(again)).toBe(encode(checkpoint));
    expect(checkpointToJson(again)).toBe(text);
    for (const one of checkpoint.frontier) expect(encode(workItemFromJson(workItemToJson(one)))).toBe(encode(one));
  }
});

const withItem = (change: string, to: string): string => ITEM.replace(change, to);
const withCheckpoint = (change: string, to: string): string => CHECKPOINT.replace(change, to);

test.each<[string, () => unknown, string, RegExp]>([
  ["no text", () => workItemFromJson(7 as never), "BAD_FORMAT", /expected JSON text, got 7/],
  ["no JSON", () => workItemFromJson("{"), "BAD_FORMAT", /expected JSON: /],
  ["a list", () => workItemFromJson("[]"), "BAD_FORMAT", /expected an object, got a list/],
  ["null", () => checkpointFromJson("null"), "BAD_FORMAT", /expected an object, got null/],
  [
    "a number too large for anything",
    () => workItemFromJson("18446744073709551615"),
    "BAD_FORMAT",
    /expected an object/,
  ],
  [
    "an unknown field",
    () => workItemFromJson(withItem('"attempt"', '"colour": 1, "attempt"')),
    "BAD_FORMAT",
    /work item, colour: is not a known field; expected version, step_id/,
  ],
  [
    "an unknown field of an item",
    () => checkpointFromJson(withCheckpoint('"order_key": 12345', '"order_key": 12345, "x": 1')),
    "BAD_FORMAT",
    /checkpoint, frontier\[0\]\.x: is not a known field/,
  ],
  [
    "__proto__ as a field",
    () => workItemFromJson(withItem('"attempt"', '"__proto__": {"a": 1}, "attempt"')),
    "BAD_FORMAT",
    /__proto__: is not a known field/,
  ],
  [
    "__proto__ in the state",
    () => workItemFromJson(withItem('"counter"', '"__proto__": {"a": 1}, "counter"')),
    "BAD_PAYLOAD",
    /work item, state: .*__proto__/,
  ],
  [
    "__proto__ spelt with escapes",
    () => workItemFromJson(withItem('"counter"', '"\\u005f_proto__": {"a": 1}, "counter"')),
    "BAD_PAYLOAD",
    /__proto__/,
  ],
  ["a missing field", () => workItemFromJson(withItem('"attempt": 0,', "")), "BAD_FORMAT", /attempt: .* got nothing/],
  [
    "a missing state",
    () => workItemFromJson(withItem(/"state".*\n/.exec(ITEM)![0], "")),
    "BAD_FORMAT",
    /state: is missing/,
  ],
  ["a step as text", () => workItemFromJson(withItem("42", '"42"')), "BAD_FORMAT", /step_id: expected a whole number/],
  ["a negative step", () => workItemFromJson(withItem("42", "-1")), "BAD_FORMAT", /step_id: .* got -1/],
  ["a step with a fraction", () => workItemFromJson(withItem("42", "1.5")), "BAD_FORMAT", /step_id: .* got 1.5/],
  [
    "a step beyond 2^53",
    () => workItemFromJson(withItem("42", "9007199254740993")),
    "BAD_FORMAT",
    /got 9007199254740993/,
  ],
  ["a negative attempt", () => workItemFromJson(withItem('"attempt": 0', '"attempt": -1')), "BAD_FORMAT", /attempt/],
  [
    "an order key of 65 bits",
    () => workItemFromJson(withItem("551615", "551616")),
    "BAD_FORMAT",
    /order_key: .*551616/,
  ],
  ["a negative order key", () => workItemFromJson(withItem("18446744073709551615", "-1")), "BAD_FORMAT", /order_key/],
  ["an order key as text", () => workItemFromJson(withItem("18446744073709551615", '"1"')), "BAD_FORMAT", /order_key/],
  [
    "an order key with an exponent",
    () => workItemFromJson(withItem("18446744073709551615", "1e19")),
    "BAD_FORMAT",
    /order_key/,
  ],
  ["an empty node", () => workItemFromJson(withItem("process_query", "")), "BAD_NAME", /node_id/],
  [
    "a lone surrogate in a name",
    () => workItemFromJson(withItem("process_query", "\\ud800")),
    "BAD_FORMAT",
    /surrogate/,
  ],
  [
    "a lone surrogate in the state",
    () => workItemFromJson(withItem('"hello"', '"\\ud800"')),
    "BAD_PAYLOAD",
    /surrogate/,
  ],
  [
    "digits a number cannot keep",
    () => workItemFromJson(withItem('"counter": 5', '"counter": 9007199254740993')),
    "BAD_FORMAT",
    /state\.counter: 9007199254740993 has more digits/,
  ],
  [
    "a number beyond all",
    () => workItemFromJson(withItem('"counter": 5', '"counter": 1e400')),
    "BAD_FORMAT",
    /counter/,
  ],
  [
    "an unknown tag",
    () => workItemFromJson(withItem('"counter": 5', '"counter": {"$": "regexp", "v": 1}')),
    "BAD_PAYLOAD",
    /tag/,
  ],
  [
    "a newer version",
    () => workItemFromJson(withItem('"step_id"', '"version": 2, "step_id"')),
    "BAD_FORMAT",
    /upgrade reprise/,
  ],
  [
    "a newer checkpoint",
    () => checkpointFromJson(withCheckpoint('"run_id"', '"version": 2, "run_id"')),
    "BAD_FORMAT",
    /version 1 or older, got 2/,
  ],
  ["an empty run id", () => checkpointFromJson(withCheckpoint("run-2025-001", "")), "BAD_ID", /run id/],
  [
    "a frontier that is none",
    () => checkpointFromJson(withCheckpoint('"frontier": [', '"frontier": 1, "x": [')),
    "BAD_FORMAT",
    /frontier: expected a list/,
  ],
  [
    "a seed of 65 bits",
    () => checkpointFromJson(withCheckpoint('"rng_seed": 42', '"rng_seed": 9223372036854775808')),
    "BAD_FORMAT",
    /rng_seed/,
  ],
  [
    "a time that is none",
    () => checkpointFromJson(withCheckpoint("10:30:01Z", "10:30")),
    "BAD_FORMAT",
    /timestamp: expected a time/,
  ],
  [
    "a day that does not exist",
    () => checkpointFromJson(withCheckpoint("10-28T10:30:01Z", "13-41T10:30:01Z")),
    "BAD_FORMAT",
    /timestamp/,
  ],
  ["an empty key", () => checkpointFromJson(withCheckpoint("sha256:def456...", "")), "BAD_FORMAT", /idempotency_key/],
  [
    "a duration below nothing",
    () => checkpointFromJson(withCheckpoint("250", "-1")),
    "BAD_FORMAT",
    /recorded_ios\[0\]\.duration_ms/,
  ],
  [
    "a state nested too deeply",
    () => workItemFromJson(withItem('"hello"', `${"[".repeat(300)}${"]".repeat(300)}`)),
    "PAYLOAD_TOO_DEEP",
    /nested/,
  ],
  [
    "a text nested beyond the stack",
    () => workItemFromJson("[".repeat(200_000) + "]".repeat(200_000)),
    "PAYLOAD_TOO_DEEP",
    /nested/,
  ],
  [
    "a text that is too long",
    () => workItemFromJson(`"${"x".repeat(64 * 1024 * 1024)}"`),
    "PAYLOAD_TOO_LARGE",
    /characters/,
  ],
  [
    "a checkpoint without its calls",
    () => checkpointToJson({ ...checkpointFromJson(CHECKPOINT), recordedIO: undefined as never }),
    "BAD_OPTIONS",
    /run\.checkpoint\(step\)/,
  ],
  [
    "an order key that is no bigint",
    () => workItemToJson({ ...workItemFromJson(ITEM), orderKey: 1 as never }),
    "BAD_OPTIONS",
    /orderKey/,
  ],
  [
    "an order key out of range",
    () => workItemToJson({ ...workItemFromJson(ITEM), orderKey: 2n ** 64n }),
    "BAD_OPTIONS",
    /orderKey/,
  ],
  [
    "a state that is no data",
    () => workItemToJson({ ...workItemFromJson(ITEM), state: () => 1 }),
    "NOT_DATA",
    /function/,
  ],
])("%s is rejected by name", (_what, call, code, message) => {
  let thrown: unknown;
  try {
    call();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(RepriseError);
  expect((thrown as RepriseError).code).toBe(code);
  expect((thrown as RepriseError).message).toMatch(message);
});
