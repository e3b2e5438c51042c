import { expect, test } from "vitest";
import { Listeners } from "./listeners.ts";

const news = (...runs: readonly number[]): ReadonlySet<number> => new Set(runs);

test("news is for those whose run it is about, and for those whose run nobody knows yet", () => {
  const listeners = new Listeners<string>();
  for (const id of ["a", "b"]) listeners.add(id, "listener");
  listeners.look("a")(1);
  expect(listeners.idsAmong(news(1))).toEqual(["a", "b"]);
  expect(listeners.idsAmong(news(2))).toEqual(["b"]);
});

test("while somebody looks which run it goes on as, news of the next one is not missed", () => {
  const listeners = new Listeners<string>();
  listeners.add("a", "listener");
  listeners.look("a")(1);
  const note = listeners.look("a");
  expect(listeners.idsAmong(news(2))).toEqual(["a"]);
  note(2);
  expect(listeners.idsAmong(news(1))).toEqual([]);
  expect(listeners.idsAmong(news(2))).toEqual(["a"]);
});

test("who looked earlier and answers later is not believed", () => {
  const listeners = new Listeners<string>();
  listeners.add("a", "listener");
  const [earlier, later] = [listeners.look("a"), listeners.look("a")];
  later(2);
  earlier(1);
  expect(listeners.idsAmong(news(2))).toEqual(["a"]);
  expect(listeners.idsAmong(news(1))).toEqual([]);
});
