import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { RunWatch } from "./run-watch.ts";
import { RunWatchers } from "./run-watchers.ts";

test("a watch leaves the watchers when it is disposed, or as soon as its signal aborts", async () => {
  const watchers = new RunWatchers();
  {
    using watch = new RunWatch(watchers, "run-1");
    expect(watchers.ids).toEqual(["run-1"]);
    const changed = watch.next();
    watchers.notify("run-1");
    await changed;
  }
  expect(watchers.isEmpty).toBe(true);
  const controller = new AbortController();
  const watch = new RunWatch(watchers, "run-1", controller.signal);
  const changed = watch.next();
  controller.abort();
  expect(watchers.isEmpty).toBe(true);
  await changed;
  await watch.next();
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  using late = new RunWatch(watchers, "run-1", controller.signal);
  expect(watchers.isEmpty).toBe(true);
  await late.next();
});

test("a change after `next` wakes the reader; one before it does not", async () => {
  const watchers = new RunWatchers();
  using watch = new RunWatch(watchers, "run-1");
  watchers.notify("run-1");
  let isWoken = false;
  const changed = watch.next().then(() => (isWoken = true));
  await Promise.resolve();
  expect(isWoken).toBe(false);
  watchers.notifyAll();
  await changed;
});
