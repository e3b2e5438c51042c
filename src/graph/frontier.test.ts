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

test("frontier order: every dequeue is the minimum of those present, and the capacity is never exceeded", async () => {
  const capacity = 64;
  const frontier = new Frontier<ReturnType<typeof item>>(capacity);
  // Kept beside it: what was let in, and not yet taken. Admission is known at once, or when its promise is settled.
  const present = new Set<number>();
  const waiting = new Set<number>();
  let least = true;
  const producers = Array.from({ length: 8 }, async (_, producer) => {
    for (const key of shuffled(10_000).filter((one) => one % 8 === producer)) {
      if (frontier.tryAdd(item(key))) present.add(key);
      else {
        waiting.add(key);
        await frontier.add(item(key));
        waiting.delete(key);
      }
      if (key % 7 === 0) await Promise.resolve();
      expect(frontier.length).toBeLessThanOrEqual(capacity);
    }
  });
  const taken = new Set<number>();
  for (let count = 0; count < 10_000;) {
    // Nothing else happens between the look and the dequeue: both are synchronous.
    const inside = frontier.length;
    expect(inside).toBeLessThanOrEqual(capacity);
    const next = frontier.tryTake();
    if (next === undefined) {
      await Promise.resolve();
      continue;
    }
    const known = [...present].filter((key) => !taken.has(key));
    least &&= known.every((key) => next.key <= key);
    expect(taken.has(next.key)).toBe(false);
    taken.add(next.key);
    present.delete(next.key);
    count += 1;
    if (count % 3 === 0) await Promise.resolve();
  }
  await Promise.all(producers);
  expect(least).toBe(true);
  expect([frontier.length, waiting.size, taken.size]).toEqual([0, 0, 10_000]);
  expect(frontier.deepest).toBe(capacity);
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
