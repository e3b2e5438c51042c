// Validation: what is rejected before a run starts, and wrong results of nodes, reducers and conditions.

import { expect, test } from "vitest";
import { append, channel, END, goto, graph, last, max, merge, START, type Channel } from "reprise";
import { checkpointFromJson, workItemFromJson } from "reprise/checkpoints";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";

/** Everything up to the start: none of it may write anything. */
async function refusalOf(start: (g: any) => unknown, options: object = {}): Promise<Error & { code?: string }> {
  return rejection(
    (async () => {
      const base = graph("g", { state: { n: last(0) }, ...options } as never) as any;
      const made = start(base.node("a", async () => {})) as ReturnType<typeof plain>;
      await using engine = await createTestEngine({ definitions: [made] });
      void engine;
    })(),
  );
}

function plain() {
  return graph("plain", { state: { n: last(0) } })
    .node("a", async () => {})
    .edge(START, "a");
}

const node = (options: object) => (g: any) => g.node("b", options, async () => {}).edge(START, "b");
const retry = (policy: object) => node({ retry: policy });

test.each<[string, (g: any) => unknown, string, RegExp]>([
  [
    "MaxAttempts 0",
    retry({ maxAttempts: 0 }),
    "BAD_POLICY",
    /node b: maxAttempts must be a whole number of at least 1/,
  ],
  ["BaseDelay 0", retry({ maxAttempts: 2, baseDelay: 0 }), "BAD_POLICY", /node b: baseDelay must be above 0/],
  ["BaseDelay negative", retry({ maxAttempts: 2, baseDelay: -1 }), "BAD_POLICY", /node b/],
  [
    "MaxDelay below BaseDelay",
    retry({ maxAttempts: 2, baseDelay: 10, maxDelay: 5 }),
    "BAD_POLICY",
    /maxDelay \(5 ms\) must be at least baseDelay \(10 ms\)/,
  ],
  ["Retryable that is no function", retry({ maxAttempts: 2, retryable: true }), "BAD_POLICY", /retryable must be/],
  ["Timeout 0", node({ timeout: 0 }), "BAD_POLICY", /node b: expected a timeout above 0/],
  ["Timeout negative", node({ timeout: -5 }), "BAD_DURATION", /node b: timeout/],
  ["unknown NodeID in an edge", (g) => g.edge(START, "missing"), "BAD_GRAPH", /no node has this name/],
  ["an edge from END", (g) => g.edge(END, "a"), "BAD_GRAPH", /edge from END: no node has this name/],
  [
    "START of LangGraph.js",
    (g) => g.edge("__start__", "a"),
    "BAD_GRAPH",
    /no node has this name.* Import START and END from reprise/,
  ],
  ["a retry that is a number", node({ retry: 3 }), "BAD_POLICY", /node b: expected \{ maxAttempts, … \}, not 3/],
  ["unknown NodeID in a spread", (g) => g.spread(START, "missing", () => []), "BAD_GRAPH", /no node has this name/],
  ["unknown NodeID in a join", (g) => g.join(["missing"], "a"), "BAD_GRAPH", /no node has this name/],
  [
    "RequiresIdempotency without key function",
    node({ effects: { requiresIdempotency: true } }),
    "BAD_GRAPH",
    /node b requires idempotency: expected a function `idempotencyKey`/,
  ],
  ["a key function that is none", node({ idempotencyKey: "k" }), "BAD_OPTIONS", /idempotencyKey: expected a function/],
  ["an effect that is no flag", node({ effects: { recordable: "no" } }), "BAD_OPTIONS", /effects.recordable/],
  ["an unknown effect", node({ effects: { pure: true } }), "BAD_OPTIONS", /no option "pure"/],
  ["an unknown option", node({ retries: 3 }), "BAD_OPTIONS", /no option "retries"/],
  ["a node without a function", (g) => g.node("b", {}), "BAD_OPTIONS", /node b: expected a function/],
  ["a target named twice", (g) => g.edge(START, ["a", "a"]), "BAD_GRAPH", /to a twice/],
])(
  "policy validation: %s is refused before the run starts, with a named error",
  async (_what, build, code, message) => {
    const refused = await refusalOf(build);
    expect([refused.code, refused.message]).toEqual([code, expect.stringMatching(message)]);
  },
);

test.each<[string, object, string, RegExp]>([
  ["maxSteps of 0", { maxSteps: 0 }, "BAD_OPTIONS", /maxSteps of 1 or more/],
  ["maxConcurrentNodes of 0", { maxConcurrentNodes: 0 }, "BAD_OPTIONS", /maxConcurrentNodes of 1 or more/],
  ["queueDepth of half", { queueDepth: 0.5 }, "BAD_OPTIONS", /queueDepth of 1 or more/],
  ["a backpressureTimeout of 0", { backpressureTimeout: 0 }, "BAD_OPTIONS", /backpressureTimeout above 0/],
  ["a backpressureTimeout below 0", { backpressureTimeout: -1 }, "BAD_DURATION", /backpressureTimeout/],
  ["a defaultNodeTimeout of 0", { defaultNodeTimeout: 0 }, "BAD_OPTIONS", /defaultNodeTimeout above 0/],
  ["a defaultNodeTimeout of a day and a bit", { defaultNodeTimeout: "1 day and a bit" }, "BAD_DURATION", /defaultNode/],
  ["a deadline of 0", { deadline: 0 }, "BAD_OPTIONS", /deadline above 0/],
  ["an output that is no function", { output: 1 }, "BAD_OPTIONS", /output: expected a function/],
  ["an unknown fold", { fold: "arrival" }, "BAD_OPTIONS", /"written" or "order-key"/],
  ["no channels", { state: undefined }, "BAD_OPTIONS", /expected channels as `state`/],
  ["a list of channels", { state: [] }, "BAD_OPTIONS", /expected channels as `state`/],
  ["a channel that was not created", { state: { n: 0 } }, "BAD_OPTIONS", /channel n was not created by/],
  ["a channel named goto", { state: { goto: last("") } }, "BAD_OPTIONS", /cannot be named goto/],
  [
    "an initial value that append cannot have",
    { state: { n: append(1 as never) } },
    "BAD_OPTIONS",
    /initial value of channel n/,
  ],
  [
    "an initial value that merge cannot have",
    { state: { n: merge([]) } },
    "BAD_OPTIONS",
    /holds an object, got a list/,
  ],
  [
    "an initial value that cannot be stored",
    { state: { n: last(() => 1) } },
    "BAD_OPTIONS",
    /channel n cannot be stored/,
  ],
])("a graph with %s is rejected", async (_what, options, code, message) => {
  const refused = await refusalOf((g) => g.edge(START, "a"), options);
  expect([refused.code, refused.message]).toEqual([code, expect.stringMatching(message)]);
});

const item = (fields: object): string =>
  JSON.stringify({ step_id: 1, order_key: 7, node_id: "a", state: {}, attempt: 0, ...fields });
const checkpoint = (fields: object): string =>
  JSON.stringify({
    run_id: "r",
    step_id: 0,
    state: {},
    frontier: [],
    rng_seed: 1,
    recorded_ios: [],
    idempotency_key: "sha256:0",
    timestamp: "2025-10-28T10:30:01Z",
    ...fields,
  });

test.each<[string, () => unknown, RegExp]>([
  ["StepID −1", () => workItemFromJson(item({ step_id: -1 })), /step_id/],
  ["Attempt −1", () => workItemFromJson(item({ attempt: -1 })), /attempt/],
  ["an empty NodeID", () => workItemFromJson(item({ node_id: "" })), /node_id|name/],
  ["RunID empty", () => checkpointFromJson(checkpoint({ run_id: "" })), /run id/i],
  ["StepID −1 of a checkpoint", () => checkpointFromJson(checkpoint({ step_id: -1 })), /step_id/],
])(
  "policy validation: %s in what others wrote is refused before anything is made of it",
  async (_what, read, message) => {
    workItemFromJson(item({}));
    checkpointFromJson(checkpoint({}));
    const refused = await rejection((async () => read())());
    expect(refused.code).toMatch(/^BAD_/);
    expect(refused.message).toMatch(message);
  },
);

test("an empty run id is rejected before anything is written", async () => {
  const g = plain();
  await using engine = await createTestEngine({ definitions: [g] });
  expect(await rejection(engine.start(g, {}, { id: "" }))).toMatchObject({ code: "BAD_ID" });
  for await (const run of engine.list()) expect(run).toBeUndefined();
});

test.each<[string, object, RegExp]>([
  ["an unknown channel", { nope: 1 }, /no channel nope; its channels are: log, facts, top, any, rule/],
  ["no list for append", { log: "x" }, /changed log, which holds a list, got a value of type string/],
  ["no object for merge", { facts: [1] }, /changed facts, which holds an object, got a list/],
  ["no number for max", { top: "9" }, /changed top, which holds a number, got a value of type string/],
  ["not a number for max", { top: Number.NaN }, /holds a number, got NaN/],
])("an input with %s is rejected before the run starts", async (_what, input, message) => {
  const g = changing("g", async () => ({}));
  await using engine = await createTestEngine({ definitions: [g] });
  const refused = await rejection(engine.start(g, input as never));
  expect([refused.code, refused.message]).toEqual(["BAD_INPUT", expect.stringMatching(message)]);
});

const tried = { count: 0 };
const RETRY = { retry: { maxAttempts: 5, baseDelay: 1, maxDelay: 1 } };

function changing(name: string, run: () => Promise<object>) {
  return graph(name, {
    state: {
      log: append<string>(),
      facts: merge<Record<string, unknown>>({}),
      top: max(0),
      any: last<unknown>(0),
      rule: channel(0, (sum, more: number) => {
        if (more < 0) throw new Error("negative");
        return more === 7 ? ((() => 7) as never) : sum + more;
      }),
    },
  })
    .node("bad", RETRY, async () => {
      tried.count += 1;
      return (await run()) as never;
    })
    .node("each", async (_ctx, _state, _item: number) => {})
    .node("spreads", async () => {})
    .edge(START, "bad")
    .edge("bad", END)
    .spread("spreads", "each", () => []);
}

class Odd {
  readonly log = ["x"];
}

test.each<[string, () => unknown, RegExp]>([
  ["an unknown channel", () => ({ nope: 1 }), /changed nope, which is not a channel; the channels are: log, facts/],
  ["no list for append", () => ({ log: "x" }), /changed log, which holds a list, got a value of type string/],
  ["nothing for append", () => ({ log: undefined }), /changed log, which holds a list, got a value of type undefined/],
  ["no object for merge", () => ({ facts: null }), /changed facts, which holds an object, got null/],
  ["no number for max", () => ({ top: 1n }), /changed top, which holds a number, got a value of type bigint/],
  ["a text", () => "done", /returned string; expected changes of channels such as \{ log: … \}, a goto/],
  ["a list", () => [{ log: ["x"] }], /returned an array; expected/],
  ["an object of a class", () => new Odd(), /returned an object of class Odd/],
  ["a change that is none", () => goto(END, 5 as never), /changed number; expected channels by name/],
  ["a goto to an empty list", () => goto([]), /returned a goto to an empty list/],
  [
    "a goto to an unknown node",
    () => goto("missing"),
    /returned a goto to missing, which is not a node; the nodes are: bad, each, spreads/,
  ],
  ["a goto to undefined", () => ({ goto: undefined }), /returned a goto to undefined, which is not a node/],
  ["a goto to START", () => goto(START as never), /returned a goto to an object, which is not a node/],
  [
    "a goto to a node that takes items",
    () => goto("each"),
    /returned a goto to each, which runs once per item of a spread/,
  ],
])("a node that returns %s fails, is not retried, and nothing of it is stored", async (_what, give, message) => {
  const g = changing("shop", async () => give() as object);
  tried.count = 0;
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 minute");
  const { cause } = await rejection(run.result());
  expect(cause).toMatchObject({ code: "BAD_GRAPH", message: expect.stringMatching(message) as string });
  expect((cause as Error).message).toMatch(/^Graph shop: node bad /);
  expect(tried.count).toBe(1);
  const types: string[] = [];
  for await (const { type } of run.journal()) types.push(type);
  expect(types).toEqual(["RunStarted", "StepCommitted", "NodeFailed", "RunFailed"]);
});

test("a change that cannot be stored names the node and the path, and is not retried", async () => {
  const g = changing("shop", async () => ({ any: { deep: [() => 1] } }));
  tried.count = 0;
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 minute");
  const { cause } = await rejection(run.result());
  expect(cause).toMatchObject({ code: "NOT_DATA" });
  expect((cause as Error).message).toMatch(/The result of node bad cannot be stored: .*change\.any\.deep/);
  expect(tried.count).toBe(1);
});

test.each<[string, object, string, RegExp]>([
  [
    "throws",
    { rule: -1 },
    "BAD_GRAPH",
    /Graph shop: the reducer of channel rule threw on the change of node bad: negative/,
  ],
  [
    "returns what cannot be stored",
    { rule: 7 },
    "NOT_DATA",
    /Graph shop: channel rule cannot be stored after the change of node bad: /,
  ],
])(
  "a rule that %s fails the run with the channel's name and writes no checkpoint",
  async (_what, change, code, message) => {
    const g = changing("shop", async () => change);
    await using engine = await createTestEngine({ definitions: [g] });
    const run = await engine.start(g, {});
    const { cause } = await rejection(run.result());
    expect(cause).toMatchObject({ code, message: expect.stringMatching(message) as string });
    const types: string[] = [];
    for await (const { type } of run.journal()) types.push(type);
    expect(types).toEqual(["RunStarted", "StepCommitted", "NodeCompleted", "RunFailed"]);
  },
);

test("a reducer gets the value and the change, and nothing else", async () => {
  const given: number[] = [];
  const g = graph("two", {
    state: {
      n: channel(0, (...args: readonly [number, number]) => {
        given.push(args.length);
        return args[0] + args[1];
      }),
    },
  })
    .node("a", async () => ({ n: 2 }))
    .node("b", async () => ({ n: 3 }))
    .edge(START, ["a", "b"]);
  await using engine = await createTestEngine({ definitions: [g] });
  expect(await (await engine.start(g, { n: 1 })).result()).toEqual({ n: 6 });
  expect(new Set(given)).toEqual(new Set([2]));
});

type Route = (g: ReturnType<typeof routed>) => unknown;
function routed() {
  return graph("shop", { state: { n: last(0) } })
    .node("a", async () => ({ n: 1 }))
    .node("b", async () => {})
    .node("each", async (_ctx, _state, _item: unknown) => {})
    .edge(START, "a");
}

const no = (why: string): never => {
  throw new Error(why);
};

test.each<[string, Route, RegExp]>([
  ["a condition that throws", (g) => g.edge("a", "b", () => no("why")), /condition of the edge from a to b threw: why/],
  [
    "a condition that returns a promise",
    (g) => g.edge("a", END, (async () => false) as never),
    /condition of the edge from a to END returned a promise/,
  ],
  [
    "a condition that names a node, as a router does",
    (g) => g.edge("a", "b", (() => "b") as never),
    /condition of the edge from a to b returned "b"; expected true or false.*goto/,
  ],
  ["a spread that throws", (g) => g.spread("a", "each", () => no("why")), /spread to each threw: why/],
  [
    "a spread that is not a list",
    (g) => g.spread("a", "each", () => 3 as never),
    /spread to each: expected a list of items, got number/,
  ],
  [
    "a spread of values that cannot be stored",
    (g) => g.spread("a", "each", () => [1, () => 2]),
    /spread to each: item 1 cannot be stored: /,
  ],
])("%s fails the run with the names of graph and edge", async (_what, build, message) => {
  const g = build(routed()) as ReturnType<typeof routed>;
  await using engine = await createTestEngine({ definitions: [g] });
  const { cause } = await rejection((await engine.start(g, {})).result());
  expect((cause as Error).message).toMatch(/^Graph shop: /);
  expect((cause as Error).message).toMatch(message);
});

test.each<[string, (state: any) => void]>([
  ["assigns to it", (state) => (state.log = [])],
  ["appends to a list of it", (state) => state.log.push("x")],
])("the error of a node that %s says that the state is frozen, and what to do", async (_what, write) => {
  const g = graph("writes", { state: { log: append<string>() } })
    .node("a", async (_ctx, state) => write(state))
    .edge(START, "a");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  const { cause } = await rejection(run.result());
  expect((cause as Error).message).toMatch(/^Cannot .* frozen: return the channels it changes instead\.$/);
  expect((await run.replay()).status).toBe("same");
});

test("an output that throws fails the run by name", async () => {
  const g = graph("shop", { state: { n: last(0) }, output: () => no("why") })
    .node("a", async () => {})
    .edge(START, "a");
  await using engine = await createTestEngine({ definitions: [g] });
  const { cause } = await rejection((await engine.start(g, {})).result());
  expect(cause).toMatchObject({ code: "BAD_GRAPH", message: "Graph shop: its output function threw: why" });
});

test("every item of a spread is a copy: no other node sees what a node does to its item", async () => {
  const shared = { tags: ["a"] };
  const seen: string[] = [];
  const g = graph("items", { state: { n: last(0) } })
    .node("each", async (_ctx, _state, item: { tags: string[] }) => {
      try {
        item.tags.push("b");
      } catch {
        seen.push("frozen");
      }
      seen.push(item.tags.join("+"));
    })
    .spread(START, "each", () => [shared, shared]);
  await using engine = await createTestEngine({ definitions: [g] });
  await (await engine.start(g, {})).result();
  expect(seen).toEqual(["frozen", "a", "frozen", "a"]);
  expect(shared).toEqual({ tags: ["a"] });
});

// ── conflicts ──

function conflicting(owner: Channel<string>) {
  return graph("shop", { state: { owner, n: last(0) } })
    .node("a", async () => ({ owner: "a" }))
    .node("b", async () => ({ owner: "b" }))
    .node("c", async () => ({ n: 1 }))
    .edge(START, ["a", "b", "c"]);
}

test("conflict policies: the last change in fold order wins, or two changes in one step fail the run by name", async () => {
  const wins = conflicting(last(""));
  await using engine = await createTestEngine({ definitions: [wins] });
  expect(await (await engine.start(wins, {})).result()).toEqual({ owner: "b", n: 1 });
  const fails = conflicting(last("", { conflict: "fail" }));
  await using other = await createTestEngine({ definitions: [fails] });
  const { cause } = await rejection((await other.start(fails, {})).result());
  expect(cause).toMatchObject({
    code: "CHANNEL_CONFLICT",
    message: expect.stringMatching(
      /node a, node b changed channel owner in one step, but it accepts one change/,
    ) as string,
  });
});

test("a channel that fails on conflicts may be changed once in every step", async () => {
  const g = graph("shop", { state: { owner: last("", { conflict: "fail" }) } })
    .node("a", async () => ({ owner: "a" }))
    .node("b", async (_ctx, { owner }) => ({ owner: `${owner}b` }))
    .edge(START, "a")
    .edge("a", "b");
  await using engine = await createTestEngine({ definitions: [g] });
  expect(await (await engine.start(g, { owner: "x" })).result()).toEqual({ owner: "ab" });
  expect(() => last(0, { conflict: "maybe" as never })).toThrow(/conflict of "last" or "fail"/);
});

// ── no progress ──

test("a run whose last nodes have no edge with a true condition fails with NO_PROGRESS and their names", async () => {
  const g = graph("shop", { state: { n: last(0) } })
    .node("a", async () => {})
    .node("b", async () => {})
    .edge(START, ["a", "b"])
    .edge("a", "b", ({ n }) => n === 1)
    .edge("b", END, ({ n }) => n === 2);
  await using engine = await createTestEngine({ definitions: [g] });
  const { cause } = await rejection((await engine.start(g, {})).result());
  expect(cause).toMatchObject({
    code: "NO_PROGRESS",
    message: expect.stringMatching(/^Graph shop cannot continue: no condition on the edges of a, b is true/) as string,
    details: { nodes: ["a", "b"] },
  });
  expect(await (await engine.start(g, { n: 2 })).result()).toEqual({ n: 2 });
});

test("no condition is true at START: the run fails before a node runs", async () => {
  const g = graph("shop", { state: { n: last(0) } })
    .node("a", async () => {})
    .edge(START, "a", ({ n }) => n === 1);
  await using engine = await createTestEngine({ definitions: [g] });
  const { cause } = await rejection((await engine.start(g, {})).result());
  expect(cause).toMatchObject({ code: "NO_PROGRESS", details: { nodes: ["START"] } });
});

test("a node without edges, an empty spread and a branch next to a completed one all end normally", async () => {
  const g = graph("ends", { state: { n: last(0), log: append<string>() } })
    .node("a", async () => ({ log: ["a"] }))
    .node("b", async () => ({ log: ["b"] }))
    .node("c", async () => ({ log: ["c"] }))
    .node("each", async (_ctx, _state, _item: number) => {})
    .edge(START, ["a", "b", "c"])
    .edge("a", "b", ({ n }) => n === 1)
    .spread("b", "each", () => []);
  await using engine = await createTestEngine({ definitions: [g] });
  expect((await (await engine.start(g, {})).result()).log).toEqual(["a", "b", "c"]);
});

test("joins that wait for each other fail the run with NO_PROGRESS and their names, at once", async () => {
  const g = graph("shop", { state: { n: last(0) } })
    .node("x", async () => {})
    .node("y", async () => {})
    .node("a", async () => {})
    .node("b", async () => {})
    .edge(START, ["x", "y"])
    .join(["x", "b"], "a")
    .join(["y", "a"], "b");
  await using engine = await createTestEngine({ definitions: [g] });
  const begun = engine.clock.now().getTime();
  const { cause } = await rejection((await engine.start(g, {})).result());
  expect(cause).toMatchObject({
    code: "NO_PROGRESS",
    message: expect.stringMatching(/joins wait for each other \(a for b; b for a\)/) as string,
    details: { nodes: ["a", "b"] },
  });
  expect(engine.clock.now().getTime() - begun).toBeLessThan(5_000);
});

test("joins at the end of a run, without edges, are not a deadlock", async () => {
  const g = graph("ends", { state: { log: append<string>() } })
    .node("x", async () => {})
    .node("y", async () => {})
    .node("never", async () => {})
    .node("a", async () => ({ log: ["a"] }))
    .node("b", async () => ({ log: ["b"] }))
    .edge(START, ["x", "y"])
    .edge("x", ["a"])
    .edge("y", ["b"])
    .edge("never", ["a", "b"])
    .join(["x", "never"], "a")
    .join(["y", "never"], "b");
  await using engine = await createTestEngine({ definitions: [g] });
  expect((await (await engine.start(g, {})).result()).log.toSorted()).toEqual(["a", "b"]);
});

test("an endless loop stops after maxSteps, and the error says what to do", async () => {
  let steps = 0;
  const g = graph("loop", { state: { n: last(0) }, maxSteps: 7 })
    .node("a", async () => {
      steps += 1;
      return { n: steps };
    })
    .edge(START, "a")
    .edge("a", "a");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  const { cause } = await rejection(run.result());
  expect(cause).toMatchObject({
    code: "MAX_STEPS_EXCEEDED",
    message: expect.stringMatching(/maxSteps of 7; .* raise maxSteps and retry the run/) as string,
    details: { steps: 7, next: ["a"] },
  });
  expect(steps).toBe(7);
});

test("a run that takes exactly maxSteps steps completes", async () => {
  const g = graph("loop", { state: { n: last(0) }, maxSteps: 7 })
    .node("a", async (_ctx, { n }) => ({ n: n + 1 }))
    .edge(START, "a")
    .edge("a", END, ({ n }) => n === 7)
    .edge("a", "a");
  await using engine = await createTestEngine({ definitions: [g] });
  expect(await (await engine.start(g, {})).result()).toEqual({ n: 7 });
});

test("a run's budget: a graph that exceeds its deadline is aborted, and fails with DEADLINE_EXCEEDED", async () => {
  const heard: string[] = [];
  const g = graph("slow", { state: { n: last(0) }, deadline: "10 s" })
    .node("quick", async () => ({ n: 1 }))
    .node("slow", { timeout: "1 hour" }, async (ctx) => {
      const signal = ctx.abortSignal;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      heard.push((signal.reason as { code: string }).code);
    })
    .node("after", async () => void heard.push("after"))
    .edge(START, "quick")
    .edge("quick", "slow")
    .edge("slow", "after");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("9 s");
  expect((await run.info()).status).toBe("running");
  await engine.clock.advance("2 s");
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED", cause: { code: "DEADLINE_EXCEEDED" } });
  expect(heard).toEqual(["CANCELLED"]);
});

// ── keys for the outside ──

test("a key function is called once per item, before its node, and every attempt has its key", async () => {
  const calls: string[] = [];
  const seen: string[] = [];
  const g = graph("pays", { state: { order: last("") } })
    .node(
      "pay",
      {
        retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 },
        effects: { recordable: true, requiresIdempotency: true },
        idempotencyKey: ({ order }, item: { cents: number }) => {
          calls.push(`${item.cents}`);
          return `${order}/${item.cents}`;
        },
      },
      async (ctx, _state, item: { cents: number }) => {
        seen.push(`${ctx.attempt} ${ctx.idempotencyKey}`);
        if (ctx.attempt === 1) throw new Error(`once ${item.cents}`);
      },
    )
    .spread(START, "pay", () => [{ cents: 1 }, { cents: 2 }]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, { order: "o-1" });
  await engine.clock.advance("1 s");
  await run.result();
  expect(seen.toSorted()).toEqual(["1 o-1/1", "1 o-1/2", "2 o-1/1", "2 o-1/2"]);
  expect(calls.toSorted()).toEqual(["1", "2"]);
});

test.each<[string, () => unknown, RegExp]>([
  ["nothing", () => undefined, /expected a text of 1 to 255 characters, got undefined/],
  ["an empty text", () => "", /got 0 characters/],
  ["a long text", () => "x".repeat(256), /got 256 characters/],
  ["a number", () => 7, /got number/],
  ["an error", () => no("why"), /idempotencyKey of node .* threw: why/],
])("a key function that returns %s fails its node before its code runs", async (_what, give, message) => {
  let calls = 0;
  const g = graph("pays", { state: { n: last(0) } })
    .node(
      "pay",
      { ...RETRY, effects: { requiresIdempotency: true }, idempotencyKey: () => give() as string },
      async () => {
        calls += 1;
      },
    )
    .edge(START, "pay");
  await using engine = await createTestEngine({ definitions: [g] });
  const { cause } = await rejection((await engine.start(g, {})).result());
  expect(cause).toMatchObject({ code: "BAD_GRAPH", message: expect.stringMatching(message) as string });
  expect((cause as Error).message).toMatch(/^Graph pays: idempotencyKey of node pay/);
  expect(calls).toBe(0);
});
