import { describe, expect, test } from "vitest";
import { applyDelta } from "../kernel/index.ts";
import { append, channel, last, max, merge } from "./channel.ts";
import { GraphState, ownData } from "./state.ts";

const CHANNELS = {
  words: append<string>(),
  facts: merge<{ a?: number; b?: number }>({}),
  best: max(0),
  owner: last("", { conflict: "fail" }),
  total: channel(0, (sum: number, change: number) => 10 * sum + change),
};
const initial = (): GraphState =>
  GraphState.of(GraphState.initial(CHANNELS).fold("g", CHANNELS, []).state.texts, CHANNELS);

describe("fold", () => {
  test("applies changes in the given order, and records each in its own form", () => {
    const changes = [
      { words: ["a"], facts: { a: 1 }, total: 1 },
      { words: ["b"], facts: { a: 2, b: 3 }, total: 2, best: 5 },
      { best: 4 },
    ];
    const { state, delta } = initial().fold("g", CHANNELS, changes);
    expect(state.values).toEqual({ words: ["a", "b"], facts: { a: 2, b: 3 }, best: 5, owner: "", total: 12 });
    expect(delta).toEqual({
      append: { words: ["a", "b"] },
      merge: { facts: { a: 2, b: 3 } },
      set: { best: 5, total: 12 },
    });
    const reversed = initial().fold("g", CHANNELS, changes.toReversed()).state;
    expect(reversed.values).toEqual({ words: ["b", "a"], facts: { a: 1, b: 3 }, best: 5, owner: "", total: 21 });
  });

  test("without changes keeps the same state", () => {
    const before = initial();
    expect(before.fold("g", CHANNELS, [{}])).toEqual({ state: before, delta: {} });
  });

  test("gives texts that the delta alone gives, too: a restore runs no reducer", () => {
    const before = initial();
    const { state, delta } = before.fold("g", CHANNELS, [{ words: ["a"], facts: { b: 1 }, total: 7 }]);
    expect(applyDelta(before.texts, delta)).toEqual(state.texts);
    expect(GraphState.of(state.texts, CHANNELS).values).toEqual(state.values);
  });

  test("does not change the state before it, and its values are frozen", () => {
    const before = initial();
    const { values } = before.fold("g", CHANNELS, [{ words: ["a"], facts: { a: 1 } }]).state;
    expect(before.values["words"]).toEqual([]);
    expect(() => (values["words"] as string[]).push("b")).toThrow(TypeError);
    expect(() => Object.assign(values["facts"] as object, { a: 2 })).toThrow(TypeError);
  });

  test("refuses two changes of a channel that allows one, and names the nodes", () => {
    const fold = () => initial().fold("g", CHANNELS, [{ owner: "a" }, { owner: "b" }], (index) => `node${index}`);
    expect(fold).toThrow(
      expect.objectContaining({ code: "CHANNEL_CONFLICT", message: expect.stringMatching(/node0.*node1/) }),
    );
  });

  test("refuses an unknown channel, a reducer that throws and a value that cannot be stored", () => {
    const throwing = {
      ...CHANNELS,
      odd: channel(0, () => {
        throw new Error("no");
      }),
    };
    expect(() => initial().fold("g", CHANNELS, [{ nothing: 1 }])).toThrow(/changed nothing, which is not a channel/);
    expect(() => GraphState.initial(throwing).fold("g", throwing, [{ odd: 1 }])).toThrow(/odd/);
    expect(() => initial().fold("g", CHANNELS, [{ words: [() => 1] }])).toThrow(/words/);
  });
});

test("a channel that the code added since has its initial value, and the next delta records it", () => {
  const kept = GraphState.initial({ words: append<string>() }).fold("g", { words: append<string>() }, []).state.texts;
  const grown = { words: append<string>(), score: max(7) };
  const state = GraphState.of(kept, grown);
  expect(state.values).toEqual({ score: 7, words: [] });
  const { delta, state: after } = state.fold("g", grown, [{ words: ["a"] }]);
  expect(delta).toEqual({ append: { words: ["a"] }, set: { score: 7 } });
  expect(after.fold("g", grown, []).delta).toEqual({});
});

test("a channel that the code removed is kept in the texts, and no node sees it", () => {
  const { texts } = initial().fold("g", CHANNELS, [{ words: ["a"] }]).state;
  const state = GraphState.of(texts, { best: max(0) });
  expect(state.values).toEqual({ best: 0 });
  expect(state.texts.get("words")).toBe('["a"]');
  expect(state.fold("g", { best: max(0) }, [{ best: 1 }]).state.texts.get("words")).toBe('["a"]');
});

test("an item gets its own copy: frozen if it can be frozen", () => {
  const item = { list: [1], at: new Date(0) };
  const copy = ownData(item) as typeof item;
  expect(copy).toEqual(item);
  expect([copy === item, copy.at === item.at]).toEqual([false, false]);
  expect(Object.isFrozen(ownData({ a: 1 }))).toBe(true);
  expect([ownData(1), ownData("a"), ownData(null), ownData(undefined)]).toEqual([1, "a", null, undefined]);
});
