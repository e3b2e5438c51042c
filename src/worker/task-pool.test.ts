import { expect, test } from "vitest";
import type { ClaimedItem } from "../kernel/index.ts";
import { TaskPool } from "./task-pool.ts";

const item = { run: 1, item: "c0", name: "job", token: "token", kind: "task", data: "{}" } as ClaimedItem;
const parts = { registry: { findTask: () => ({}) } } as never;
const reason = (): Error => new Error("dropped");

test("a claimed item is held before it starts, and dropped with its run", () => {
  const pool = new TaskPool(parts);
  const running = pool.expect(item);
  expect([pool.items(), pool.holdsToken(1, "c0", "token"), pool.isExpected(running)]).toEqual([[item], true, true]);
  pool.abandon(1, reason);
  expect([pool.items(), pool.isExpected(running)]).toEqual([[], false]);
});

test("a claimed item whose lease is lost before it starts is dropped", () => {
  const pool = new TaskPool(parts);
  const running = pool.expect(item);
  expect(pool.abandonItem(item, reason)).toBe(running);
  expect(pool.isExpected(running)).toBe(false);
});
