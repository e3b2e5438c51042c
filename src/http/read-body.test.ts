import { expect, test } from "vitest";
import type { Clock, Timers } from "../base/index.ts";
import { CallerGate } from "./caller-gate.ts";
import { jsonDepth } from "./json-depth.ts";
import { withBody } from "./read-body.ts";
import { HTTP_LIMITS, type HttpLimits } from "./limits.ts";

/** A clock that moves when a body says so, and timers that fire as the clock passes them. */
function virtualTime(): Clock & Timers & { advance(ms: number): void } {
  let now = 0;
  const due = new Set<{ readonly at: number; readonly fn: () => void }>();
  return {
    now: () => now,
    monotonic: () => now,
    set(ms, fn) {
      const timer = { at: now + ms, fn };
      due.add(timer);
      return () => void due.delete(timer);
    },
    soon: (fn) => queueMicrotask(fn),
    advance(ms) {
      now += ms;
      for (const timer of [...due])
        if (timer.at <= now) {
          due.delete(timer);
          timer.fn();
        }
    },
  };
}

/** A body of chunks, each after a pause. A chunk of no bytes never comes. */
function slowRequest(
  time: ReturnType<typeof virtualTime>,
  chunks: readonly (readonly [ms: number, bytes: number])[],
): Request {
  const rest = [...chunks];
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = rest.shift();
        if (next === undefined) {
          controller.close();
          return undefined;
        }
        time.advance(next[0]);
        if (next[1] === 0) return new Promise<never>(() => undefined);
        controller.enqueue(new Uint8Array(next[1]));
        return undefined;
      },
    },
    { highWaterMark: 0 },
  );
  return new Request("http://localhost/", { method: "PUT", body, duplex: "half" });
}

async function read(
  limits: Partial<HttpLimits>,
  chunks: readonly (readonly [ms: number, bytes: number])[],
  maxBytes = 1_000_000,
): Promise<number> {
  const time = virtualTime();
  const all = { ...HTTP_LIMITS, ...limits };
  const gate = new CallerGate(time);
  const options = { caller: "edge", gate, limits: all, clock: time, timers: time };
  const reading = withBody(
    slowRequest(time, chunks),
    { name: "packBytes", bytes: maxBytes },
    options,
    (bytes) => bytes.length,
  );
  return reading;
}

test("a body at the lowest rate is read, and one below it is refused", async () => {
  const limits = { idleMs: 1_000, slowBytesPerSecond: 100 };
  const drip = (bytes: number): (readonly [number, number])[] =>
    Array.from({ length: 50 }, () => [900, bytes] as const);
  expect(await read(limits, drip(90))).toBe(4_500);
  await expect(read(limits, drip(50))).rejects.toMatchObject({
    code: "LIMIT_EXCEEDED",
    details: { limit: "slowBytesPerSecond", status: 408 },
  });
});

test("a body that pauses longer than the limit is refused", async () => {
  await expect(
    read({ idleMs: 1_000 }, [
      [500, 10],
      [1_001, 0],
    ]),
  ).rejects.toMatchObject({
    code: "LIMIT_EXCEEDED",
    details: { limit: "idleMs" },
  });
});

test("a body without a length is refused at its limit", async () => {
  expect(
    await read(
      {},
      [
        [0, 500],
        [0, 500],
      ],
      1_000,
    ),
  ).toBe(1_000);
  await expect(
    read(
      {},
      [
        [0, 500],
        [0, 501],
      ],
      1_000,
    ),
  ).rejects.toMatchObject({
    code: "LIMIT_EXCEEDED",
    details: { limit: "packBytes", status: 413 },
  });
});

test("a peer that sends faster than its rate is read at its rate", () => {
  const time = virtualTime();
  const gate = new CallerGate(time);
  const limits = { ...HTTP_LIMITS, bytesPerSecond: 1_000 };
  expect(gate.pace("edge", 1_000, limits)).toBe(0);
  expect(gate.pace("edge", 500, limits)).toBe(500);
  expect(gate.pace("hub", 1_000, limits)).toBe(0);
  time.advance(500);
  expect(gate.pace("edge", 100, limits)).toBe(100);
  time.advance(10_000);
  expect(gate.pace("edge", 1_000, limits)).toBe(0);
  expect(gate.pace("edge", 1, limits)).toBe(1);
});

test("memory for bodies is given in order, and a body larger than all of it gets it alone", async () => {
  const gate = new CallerGate(virtualTime());
  const limits = { ...HTTP_LIMITS, bufferedBytes: 100 };
  const first = await gate.reserve("edge", 60, limits);
  const order: string[] = [];
  const second = gate.reserve("edge", 200, limits).then((release) => (order.push("large"), release));
  const third = gate.reserve("edge", 10, limits).then((release) => (order.push("small"), release));
  (await gate.reserve("hub", 100, limits))();
  expect(order).toEqual([]);
  first();
  const releaseSecond = await second;
  expect(order).toEqual(["large"]);
  releaseSecond();
  (await third)();
  expect(order).toEqual(["large", "small"]);
});

test("the depth of JSON counts brackets outside of texts", () => {
  const depthOf = (text: string): number => jsonDepth(Buffer.from(text));
  expect(depthOf('{"a":[1,{"b":[]}]}')).toBe(4);
  expect(depthOf('{"a":"[[[["}')).toBe(1);
  expect(depthOf('{"a\\"[[":"\\\\","b":[]}')).toBe(2);
  expect(depthOf("[][][]")).toBe(1);
  expect(depthOf("1")).toBe(0);
});
