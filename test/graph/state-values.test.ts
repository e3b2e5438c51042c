// State values: a node reads the values that a replay would decode.

import { expect, test } from "vitest";
import { append, createEngine, END, graph, last, merge, START } from "reprise";
import { openStores } from "./graph-stores.ts";

test("a node sees the keys of a merged object in canonical order, whatever the order of the changes", async () => {
  const seen: string[][] = [];
  const letters = ["m", "z", "a", "10", "9", "m"];
  const spell = graph("spell", { state: { facts: merge<Record<string, number>>({}), n: last(0) } })
    .node("add", async (_ctx, { facts, n }) => {
      seen.push(Object.keys(facts));
      return { facts: { [letters[n]!]: n }, n: n + 1 };
    })
    .edge(START, "add")
    .edge("add", END, ({ n }) => n === letters.length)
    .edge("add", "add");
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [spell] });
  const run = await engine.start(spell, {});
  expect(await run.result()).toEqual({ facts: { 10: 3, 9: 4, a: 2, m: 5, z: 1 }, n: 6 });
  expect(seen).toEqual([[], ["m"], ["m", "z"], ["a", "m", "z"], ["10", "a", "m", "z"], ["9", "10", "a", "m", "z"]]);
});

test("values of a step are immutable, and unchanged values stay the same objects", async () => {
  const facts: unknown[] = [];
  const lists: unknown[] = [];
  const keep = graph("keep", {
    state: { facts: merge<Record<string, { n: number }>>({}), list: append<{ n: number }>(), n: last(0) },
  })
    .node("look", async (_ctx, state) => {
      facts.push(state.facts);
      lists.push(state.list);
      const change = { n: state.n };
      return state.n === 1 ? { n: 2 } : { facts: { [`f${state.n}`]: change }, list: [change], n: state.n + 1 };
    })
    .edge(START, "look")
    .edge("look", END, ({ n }) => n === 4)
    .edge("look", "look");
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [keep] });
  await (await engine.start(keep, { facts: { first: { n: -1 } } })).result();
  expect(facts[1]).toBe(facts[2]);
  expect(lists[1]).toBe(lists[2]);
  expect((facts[3] as Record<string, unknown>)["first"]).toBe((facts[0] as Record<string, unknown>)["first"]);
  for (const value of [...facts, ...lists])
    for (const part of [value, ...Object.values(value as object)]) expect(Object.isFrozen(part)).toBe(true);
});
