// Determinism: the order in which nodes end has no effect.

import { expect, test } from "vitest";
import { append, channel, createEngine, END, graph, last, merge, START } from "reprise";
import { openStores } from "./graph-stores.ts";

test.each(["written", "order-key"] as const)(
  "merge order ≠ completion order: 100 runs with random node delays end in byte-identical states and checkpoints (%s)",
  async (fold) => {
    const names = ["a", "b", "c", "d", "e"] as const;
    const seen: number[] = [];
    const delay = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.random() * 8));
    const g = graph("merges", {
      fold,
      state: {
        log: append<string>(),
        newest: last(""),
        all: merge<Record<string, number>>({}),
        joined: channel("", (text, more: string) => `${text}>${more}`),
      },
    })
      .node("a", async () => (await delay(), { log: ["a"], newest: "a", all: { a: 1, x: 1 }, joined: "a" }))
      .node("b", async () => (await delay(), { log: ["b"], newest: "b", all: { b: 2, x: 2 }, joined: "b" }))
      .node("c", async () => (await delay(), { log: ["c"], newest: "c", all: { c: 3, x: 3 }, joined: "c" }))
      .node("d", async () => (await delay(), { log: ["d"], newest: "d", all: { d: 4, x: 4 }, joined: "d" }))
      .node("e", async () => (await delay(), { log: ["e"], newest: "e", all: { e: 5, x: 5 }, joined: "e" }))
      .node("each", async (ctx, _state, item: number) => (await delay(), { log: [`${item} ${ctx.random()}`] }))
      .node("fan", async (_ctx, state) => {
        seen.push(state.log.length);
      })
      .node("after", async (_ctx, state) => {
        await delay();
        seen.push(state.log.length);
        return { log: ["after"] };
      })
      .edge(START, [...names])
      .join([...names], "fan")
      .spread("fan", "each", () => [1, 2, 3, 4])
      .join(["each"], "after")
      .edge("after", END);
    const results = new Set<string>();
    const logs = new Set<string>();
    const orders = new Set<string>();
    for (let n = 0; n < 10; n += 1) {
      using stores = openStores();
      await using engine = await createEngine({ store: stores.source, definitions: [g] });
      await Promise.all(
        // The id is part of the key, so each of the ten runs at once has its like in every round.
        Array.from({ length: 10 }, async (_, index) => {
          const run = await engine.start(g, {}, { id: `run-${index}` });
          const { log } = await run.result();
          logs.add(log.filter((line) => line.length === 1).join(""));
          const { run: number } = (await stores.store.findRun(run.id))!;
          const entries = await stores.store.readJournal(number, 0);
          const steps = entries.flatMap(({ type, data }) => (type === "StepCommitted" ? [data] : []));
          const rows = await stores.store.readCheckpoints(number, -1);
          const checkpoints = rows.map(({ step, key, label, state }) => [step, key, label, state]);
          results.add(`${index} ${JSON.stringify(checkpoints)} ${steps.join("\n")}`);
          orders.add(entries.flatMap(({ type, command }) => (type === "NodeCompleted" ? [command] : [])).join(" "));
        }),
      );
    }
    // Nodes did end in other orders; nothing else tells.
    expect(orders.size).toBeGreaterThan(10);
    expect(results.size).toBe(10);
    expect(logs.size).toBe(1);
    if (fold === "written") expect([...logs]).toEqual(["abcde"]);
    expect(new Set(seen)).toEqual(new Set([5, 9]));
  },
);

test("ascending order keys differ from the written order", async () => {
  const build = (fold: "written" | "order-key") =>
    graph(fold, { fold, state: { log: append<number>() } })
      .node("each", async (_ctx, _state, item: number) => ({ log: [item] }))
      .spread(START, "each", () => [0, 1, 2, 3, 4, 5, 6, 7]);
  const written = build("written");
  const keyed = build("order-key");
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [written, keyed] });
  expect((await (await engine.start(written, {})).result()).log).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  const run = await engine.start(keyed, {});
  const { log } = await run.result();
  expect(log).not.toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  for await (const { type, data } of run.journal())
    if (type === "StepCommitted" && (data as { step: number }).step === 0) {
      const { frontier } = data as { frontier: { orderKey: string; input: number }[] };
      expect(log).toEqual(frontier.toSorted((a, b) => (a.orderKey < b.orderKey ? -1 : 1)).map(({ input }) => input));
    }
});

test("fan-out 3 with queueDepth 1 and one concurrent node completes", async () => {
  let atWork = 0;
  let most = 0;
  const g = graph("narrow", { state: { got: append<number>() }, queueDepth: 1, maxConcurrentNodes: 1 })
    .node("each", async (_ctx, _state, item: number) => {
      most = Math.max(most, ++atWork);
      await new Promise((resolve) => setImmediate(resolve));
      atWork -= 1;
      return { got: [item] };
    })
    .spread(START, "each", () => [1, 2, 3]);
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  expect(await (await engine.start(g, {})).result()).toEqual({ got: [1, 2, 3] });
  expect(most).toBe(1);
});

test("a node cannot change the state that another node reads", async () => {
  const g = graph("isolated", {
    state: { list: append<number>([1]), map: last(new Map([["a", 1]])), ok: append<string>() },
  })
    .node("bad", async (_ctx, state) => {
      const tried: string[] = [];
      try {
        (state.list as number[]).push(2);
      } catch {
        tried.push("frozen");
      }
      state.map.set("b", 2);
      return { ok: [...tried, `bad sees ${state.map.size}`] };
    })
    .node("good", async (_ctx, state) => {
      await new Promise((resolve) => setImmediate(resolve));
      return { ok: [`good sees ${state.list.length} ${state.map.size}`] };
    })
    .edge(START, ["bad", "good"]);
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const { ok, map } = await (await engine.start(g, {})).result();
  expect(ok).toEqual(["frozen", "bad sees 2", "good sees 1 1"]);
  expect(map).toEqual(new Map([["a", 1]]));
});
