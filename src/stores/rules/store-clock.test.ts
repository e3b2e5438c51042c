import { expect, test } from "vitest";
import { StoreClock } from "./store-clock.ts";

function machineAt(wall: number) {
  const machine = { wall, mono: 0, now: () => machine.wall, monotonic: () => machine.mono };
  return machine;
}

test("time follows the wall clock while that advances", () => {
  const machine = machineAt(1_000);
  const clock = new StoreClock(machine, 0);
  expect(clock.now()).toBe(1_000);
  machine.wall = 5_000;
  machine.mono = 10;
  expect(clock.now()).toBe(5_000);
});

test("when the wall clock is set back, time advances at the speed of real time", () => {
  const machine = machineAt(10_000);
  const clock = new StoreClock(machine, 0);
  expect(clock.now()).toBe(10_000);
  machine.wall = 2_000;
  machine.mono = 250.7;
  expect(clock.now()).toBe(10_250);
  machine.wall = 2_001;
  machine.mono = 1_000;
  expect(clock.now()).toBe(11_000);
});

test("after a restart with the wall clock behind, time continues from the mark", () => {
  const machine = machineAt(1_000);
  const clock = new StoreClock(machine, 9_000);
  expect(clock.now()).toBe(9_000);
  machine.mono = 500;
  expect(clock.now()).toBe(9_500);
});

test("the clock adopts the time of a writer that is ahead, and ignores one that is behind", () => {
  const machine = machineAt(1_000);
  const clock = new StoreClock(machine, 0);
  clock.raise(500);
  expect(clock.now()).toBe(1_000);
  clock.raise(4_000);
  machine.mono = 1;
  expect(clock.now()).toBe(4_001);
});

test("time never goes backwards, for any movement of the wall clock", () => {
  const machine = machineAt(1_000_000);
  const clock = new StoreClock(machine, 0);
  let last = clock.now();
  let seed = 42;
  for (let step = 0; step < 5_000; step++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    machine.wall += (seed % 2_001) - 1_000;
    const elapsed = seed % 7;
    machine.mono += elapsed;
    const now = clock.now();
    expect(now).toBeGreaterThanOrEqual(last + elapsed);
    last = now;
  }
});
