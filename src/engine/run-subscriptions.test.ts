import { expect, test } from "vitest";
import { RunSubscriptions } from "./run-subscriptions.ts";

const changed = (...runs: readonly number[]): ReadonlySet<number> => new Set(runs);

test("a change concerns the ids whose run it names, and those whose run is not known yet", () => {
  const subscriptions = new RunSubscriptions<string>();
  for (const id of ["a", "b"]) subscriptions.add(id, "subscriber");
  subscriptions.beginRead("a")(1);
  expect(subscriptions.idsAffectedBy(changed(1))).toEqual(["a", "b"]);
  expect(subscriptions.idsAffectedBy(changed(2))).toEqual(["b"]);
});

test("while the next generation is being read, a change of it is not missed", () => {
  const subscriptions = new RunSubscriptions<string>();
  subscriptions.add("a", "subscriber");
  subscriptions.beginRead("a")(1);
  const noteRun = subscriptions.beginRead("a");
  expect(subscriptions.idsAffectedBy(changed(2))).toEqual(["a"]);
  noteRun(2);
  expect(subscriptions.idsAffectedBy(changed(1))).toEqual([]);
  expect(subscriptions.idsAffectedBy(changed(2))).toEqual(["a"]);
});

test("the answer of an earlier read has no effect after a later read has begun", () => {
  const subscriptions = new RunSubscriptions<string>();
  subscriptions.add("a", "subscriber");
  const [earlier, later] = [subscriptions.beginRead("a"), subscriptions.beginRead("a")];
  later(2);
  earlier(1);
  expect(subscriptions.idsAffectedBy(changed(2))).toEqual(["a"]);
  expect(subscriptions.idsAffectedBy(changed(1))).toEqual([]);
});
