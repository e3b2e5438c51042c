import { expect, test } from "vitest";
import { createVirtualTime } from "./virtual-clock.ts";

test("time stands still until it is advanced", () => {
  const time = createVirtualTime(1_000);
  expect([time.now(), time.clock.now(), time.clock.monotonic()]).toEqual([1_000, 1_000, 0]);
  time.advanceTo(1_250);
  expect([time.now(), time.clock.monotonic()]).toEqual([1_250, 250]);
  expect(() => time.advanceTo(1_249)).toThrow();
});

test("timers fire when they are due, in order, each at its own time", () => {
  const time = createVirtualTime(0);
  const fired: [string, number][] = [];
  const note = (name: string) => () => void fired.push([name, time.now()]);
  time.timers.set(30, note("late"));
  time.timers.set(10, note("first"));
  time.timers.set(10, note("second"));
  time.timers.set(40, note("later"));
  expect([time.nextAt(), time.pending()]).toEqual([10, 4]);
  time.advanceTo(9);
  expect(fired).toEqual([]);
  time.advanceTo(35);
  expect(fired).toEqual([
    ["first", 10],
    ["second", 10],
    ["late", 30],
  ]);
  expect([time.now(), time.nextAt(), time.pending()]).toEqual([35, 40, 1]);
});

test("a cancelled timer never fires, and a timer set by another fires in the same advance", () => {
  const time = createVirtualTime(0);
  const fired: number[] = [];
  const cancel = time.timers.set(5, () => fired.push(-1));
  time.timers.set(10, () => {
    fired.push(time.now());
    time.timers.set(0, () => fired.push(time.now()));
    time.timers.set(10, () => fired.push(time.now()));
    time.timers.set(11, () => fired.push(-1));
  });
  cancel();
  time.advanceTo(20);
  expect(fired).toEqual([10, 10, 20]);
  expect(time.pending()).toBe(1);
});

test("setting the wall clock moves neither the monotonic clock nor the timers", () => {
  const time = createVirtualTime(10_000);
  const fired: number[] = [];
  time.timers.set(100, () => fired.push(time.clock.monotonic()));
  time.setWall(5_000);
  expect([time.now(), time.clock.monotonic(), time.nextAt()]).toEqual([5_000, 0, 5_100]);
  time.advanceTo(5_100);
  expect(fired).toEqual([100]);
});

test("soon runs after promises that are already settled, without time passing", async () => {
  const time = createVirtualTime(0);
  const order: string[] = [];
  const ran = new Promise<void>((resolve) => {
    time.timers.soon(() => {
      order.push("soon");
      resolve();
    });
  });
  await Promise.resolve().then(() => order.push("promise"));
  await ran;
  expect(order).toEqual(["promise", "soon"]);
  expect(time.now()).toBe(0);
});
