import { expect, test } from "vitest";
import { Frontier } from "./frontier.ts";

const item = (key: number) => ({ orderKey: key.toString(16).padStart(16, "0"), path: "", key });

function shuffled(count: number, seed = 1): number[] {
  const keys = Array.from({ length: count }, (_, index) => index);
  let state = seed;
  for (let at = count - 1; at > 0; at -= 1) {
    state = (state * 48_271) % 2_147_483_647;
    const other = state % (at + 1);
    [keys[at], keys[other]] = [keys[other]!, keys[at]!];
  }
  return keys;
}

test("every dequeue is the minimum of the admitted items, those that waited included, and the capacity is never exceeded", async () => {
  const capacity = 64;
  const frontier = new Frontier<ReturnType<typeof item>>(capacity);
  // What the frontier must hold, kept beside it: admitted items, and waiting ones in order of arrival.
  const present = new Set<number>();
  const waiting: number[] = [];
  let mostWaiting = 0;
  let waited = 0;
  const producers = Array.from({ length: 8 }, async (_, producer) => {
    for (const key of shuffled(10_000).filter((one) => one % 8 === producer)) {
      if (present.size < capacity) {
        expect(frontier.tryAdd(item(key))).toBe(true);
        present.add(key);
      } else {
        expect(frontier.tryAdd(item(key))).toBe(false);
        mostWaiting = Math.max(mostWaiting, waiting.push(key));
        await frontier.add(item(key));
        expect(waiting).not.toContain(key);
        waited += 1;
      }
      if (key % 7 === 0) await Promise.resolve();
    }
  });
  for (let count = 0; count < 10_000;) {
    expect(frontier.length).toBe(present.size);
    const next = frontier.tryTake();
    if (next === undefined) {
      await Promise.resolve();
      continue;
    }
    expect(next.key).toBe(Math.min(...present));
    present.delete(next.key);
    // The place goes to the item that has waited longest, at once.
    const admitted = waiting.shift();
    if (admitted !== undefined) present.add(admitted);
    expect(frontier.length).toBe(present.size);
    count += 1;
    if (count % 3 === 0) await Promise.resolve();
  }
  await Promise.all(producers);
  expect([frontier.length, present.size, waiting.length]).toEqual([0, 0, 0]);
  expect(frontier.deepest).toBe(capacity);
  expect([mostWaiting, frontier.blocked]).toEqual([8, waited]);
  expect(waited).toBeGreaterThan(1_000);
});

test("items are taken in ascending order if all are present", () => {
  const frontier = new Frontier<ReturnType<typeof item>>(1_000);
  for (const key of shuffled(1_000)) expect(frontier.tryAdd(item(key))).toBe(true);
  expect(frontier.tryAdd(item(1_000))).toBe(false);
  const taken = Array.from({ length: 1_000 }, () => frontier.tryTake()!.key);
  expect(taken).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
});

test("an item beyond the capacity waits for a dequeue, and an abort rejects it", async () => {
  const frontier = new Frontier<ReturnType<typeof item>>(2);
  await frontier.add(item(5));
  await frontier.add(item(6));
  const abort = new AbortController();
  const aborted = frontier.add(item(7), abort.signal);
  let admitted = false;
  const waiting = frontier.add(item(1)).then(() => (admitted = true));
  await Promise.resolve();
  expect([frontier.length, admitted, frontier.blocked]).toEqual([2, false, 2]);
  abort.abort(new Error("stop"));
  await expect(aborted).rejects.toThrow("stop");
  expect((await frontier.take()).key).toBe(5);
  await waiting;
  expect((await frontier.take()).key).toBe(1);
  expect((await frontier.take()).key).toBe(6);
  expect(frontier.tryTake()).toBeUndefined();
});

test("a waiting taker gets the next item, and an aborted one does not", async () => {
  const frontier = new Frontier<ReturnType<typeof item>>(1);
  const abort = new AbortController();
  const gone = frontier.take(abort.signal);
  const waiting = frontier.take();
  abort.abort(new Error("gone"));
  await expect(gone).rejects.toThrow("gone");
  await frontier.add(item(3));
  expect((await waiting).key).toBe(3);
});
