// The text of entries is put together by hand; it must be what the codec would have written.

import { expect, test } from "vitest";
import { decode, encode } from "../base/index.ts";
import { errorOf } from "../kernel/index.ts";
import * as entry from "./entry-data.ts";
import { startedData } from "./started-data.ts";

const VALUE = encode({ b: [undefined, 1n], a: new Date(0) });
const ERROR = Object.assign(new TypeError('a "quoted"\nmessage', { cause: new Error("deeper") }), { code: "E1" });
const RETRY = { maxAttempts: 3, baseDelay: "1 s", maxDelay: 5000 } as const;

const TEXTS: readonly string[] = [
  startedData({ definition: 'a "name"', version: 2, flags: [1, 2], input: VALUE }),
  startedData({ definition: "a", version: 1, flags: [], input: undefined }),
  startedData({ definition: "a", version: 1, flags: [], input: undefined, models: { fast: "strong" }, seed: 1n }),
  entry.taskScheduledData({
    index: 0,
    taskType: "t\n",
    input: VALUE,
    given: "sha256:0",
    policy: { retry: RETRY, timeout: 5 },
  }),
  entry.taskScheduledData({
    index: 7,
    taskType: "t",
    input: undefined,
    given: undefined,
    policy: { retry: { maxAttempts: 1 } },
  }),
  entry.childInitiatedData({
    index: 1,
    childExecutionId: "id",
    childExecutionName: "name",
    childWorkflowKind: "workflow",
    input: VALUE,
    given: "sha256:0",
  }),
  entry.timerStartedData({ index: 2, timerId: "sleep", ms: 1000, shielded: false, until: undefined }),
  entry.timerStartedData({ index: 2, timerId: "renewal", ms: 1000, shielded: true, until: true }),
  entry.timerCancelledData(3, "sleepUntil"),
  entry.promiseCreatedData(4, "port", 1000, VALUE),
  entry.promiseCreatedData(4, "port", undefined, undefined),
  entry.promiseResolvedData("port", VALUE),
  entry.promiseResolvedData("port", undefined),
  entry.promiseRejectedData("port", ERROR),
  entry.stateSetData(5, "key", VALUE),
  entry.stateClearedData(6, "key"),
  entry.stateClearedData(6, undefined),
  entry.patchMarkedData('a "patch"'),
  entry.operationCompletedData({ index: 7, name: "call", input: VALUE, attempt: 0 }, VALUE),
  entry.operationCompletedData({ index: 7, name: "call", input: undefined, attempt: 2 }, undefined),
  entry.operationFailedData({ index: 8, name: "call", input: VALUE, attempt: 1 }, ERROR, 250),
  entry.operationFailedData({ index: 8, name: "call", input: undefined, attempt: 0 }, "a thrown text"),
  entry.taskCompletedData(0, VALUE, undefined),
  entry.taskCompletedData(2, undefined, entry.addFailure(undefined, ERROR)),
  entry.taskFailedData(2, ERROR, entry.addFailure(entry.addFailure(undefined, ERROR), "text")),
  entry.childCompletedData("id", VALUE),
  entry.childFailedData("id", ERROR),
  entry.childIdTakenData("id"),
  entry.cancelRequestedData('because "so"'),
  entry.cancelRequestedData(undefined),
  entry.runCompletedData(VALUE),
  entry.runCompletedData(undefined),
  entry.runFailedData(ERROR),
  entry.runContinuedData(2, "sha256:0"),
  entry.runContinuedData(1, undefined),
];

test("the text of every entry is canonical: decoding and encoding it changes no byte", () => {
  for (const text of TEXTS) expect(encode(decode(text))).toBe(text);
});

test("an entry preserves its value", () => {
  expect(decode(entry.promiseResolvedData("port", VALUE))).toEqual({ promiseId: "port", value: decode(VALUE) });
  expect(decode(entry.promiseResolvedData("port", undefined))).toEqual({ promiseId: "port" });
});

test("a failure keeps its stack, truncated to the limit and well-formed", () => {
  const long = new Error("long");
  long.stack = `\ud800${"x".repeat(10_000)}`;
  const data = decode(entry.runFailedData(long)) as { error: Error; stack: string };
  expect(data.stack).toHaveLength(4000);
  expect(data.stack.isWellFormed()).toBe(true);
  expect((errorOf(data) as Error).stack).toBe(data.stack);
});

test("an entry keeps the last ten failures, in order", () => {
  let failures: string | undefined;
  for (let attempt = 0; attempt < 15; attempt += 1)
    failures = entry.addFailure(failures, new Error(`attempt ${attempt}`));
  const kept = decode(failures ?? "[]") as Error[];
  expect(kept.map(({ message }) => message)).toEqual(Array.from({ length: 10 }, (_, index) => `attempt ${index + 5}`));
});
