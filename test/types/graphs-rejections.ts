// What must not compile about graphs. Each line is wrong in one way; `tsc` complains when it is accepted. Checked, never run.

import {
  append,
  channel,
  createEngine,
  END,
  goto,
  graph,
  last,
  max,
  merge,
  promise,
  START,
  stream,
  workflow,
  type Engine,
  type Run,
} from "reprise";
import { describeGraph } from "reprise/describe";
import { crashEverywhere } from "reprise/testing";

const small = graph("small", {
  state: {
    n: last(0),
    words: append<string>(),
    facts: merge<{ a?: number }>({}),
    best: max(),
    sum: channel(0n, (sum, more: number) => sum + BigInt(more)),
  },
  ports: { approve: promise<{ ok: boolean }>(), progress: stream<number>() },
})
  .node("a", async () => ({ n: 1 }))
  .node("b", async () => {})
  .node("item", async (_ctx, _state, item: number) => ({ n: item }));

// ── names of nodes ──

// @ts-expect-error no such node
small.edge("a", "missing");
// @ts-expect-error no such node to come from
small.edge("missing", "a");
// @ts-expect-error no such node among several
small.edge("a", ["b", "missing"]);
// @ts-expect-error END is no target among several
small.edge("a", ["b", END]);
// @ts-expect-error nothing comes from END
small.edge(END, "a");
// @ts-expect-error nothing leads to START
small.edge("a", START);
// @ts-expect-error no such node to wait for
small.join(["missing"], "a");
// @ts-expect-error no such node to join in
small.join(["a"], "missing");
// @ts-expect-error a join waits for a list
small.join("a", "b");
// @ts-expect-error a node that takes items is no join
small.join(["a"], "item");
// @ts-expect-error the name is taken
small.node("a", async () => {});
// @ts-expect-error the name is taken by a node that takes items
small.node("item", async () => {});
// Nodes come before edges: this one is not there yet.
graph("early", { state: {} })
  .node("a", async () => {})
  // @ts-expect-error written below
  .edge("a", "later")
  .node("later", async () => {});

// ── spread ──

// @ts-expect-error a node that takes items is reached by a spread
small.edge("a", "item");
// @ts-expect-error a node that takes none is not
small.spread("a", "b", () => [1]);
// @ts-expect-error the items have another type
small.spread("a", "item", () => ["x"]);
// @ts-expect-error the items are a list
small.spread("a", "item", () => 5);
// @ts-expect-error items are made of the state
small.spread("a", "item", (state) => state.nothing);
// @ts-expect-error items are made at once
small.spread("a", "item", async () => [1]);

// ── what a node returns ──

// @ts-expect-error no such channel
small.node("x", async () => ({ nothing: 1 }));
// @ts-expect-error no such channel beside one that is there
small.node("x", async () => ({ n: 1, nothing: 1 }));
// @ts-expect-error the change has another type
small.node("x", async () => ({ n: "one" }));
// @ts-expect-error a list is changed by a list
small.node("x", async () => ({ words: "one" }));
// @ts-expect-error the items of the list have another type
small.node("x", async () => ({ words: [1] }));
// @ts-expect-error an object is changed by its own keys
small.node("x", async () => ({ facts: { b: 1 } }));
// @ts-expect-error a rule of one's own takes what it says, not the value
small.node("x", async () => ({ sum: 1n }));
// @ts-expect-error a number is no change
small.node("x", async () => 5);
// @ts-expect-error goto changes channels that are there
small.node("x", async () => goto("a", { nothing: 1 }));
// @ts-expect-error also beside others
small.node("x", async () => goto("a", { n: 1, nothing: 1 }));
// @ts-expect-error goto changes them by their type
small.node("x", async () => goto("a", { n: "one" }));

// ── what a node sees ──

small.node("x", async (ctx, state) => {
  // @ts-expect-error no such channel
  void state.nothing;
  // @ts-expect-error a node changes nothing in place
  state.n = 1;
  // @ts-expect-error nor inside
  state.words.push("x");
  // @ts-expect-error no such port
  await ctx.promise("missing");
  // @ts-expect-error a stream is not waited for
  await ctx.promise("progress");
  const decision = await ctx.promise("approve", { timeout: "1 day" });
  // @ts-expect-error a wait that may run out may give nothing
  void decision.ok;
  // @ts-expect-error what it carries is known
  void decision?.okay;
  // @ts-expect-error a chunk has the stream's type
  ctx.emit("progress", "half");
  // @ts-expect-error a graph's state is not set: a node returns what it changes
  void ctx.state;
  // @ts-expect-error a node does not sleep; a promise with a timeout waits
  await ctx.sleep("1 s");
  // @ts-expect-error a graph takes no signals
  await ctx.receive("go");
  // @ts-expect-error a label is text
  ctx.label(5);
  // @ts-expect-error a Response is not data; read it inside
  await ctx.run("fetch", () => fetch("https://example.org"));
  // @ts-expect-error the request has another type
  await ctx.run("llm", { n: 1 }, (_op, request: { n: string }) => request.n);
  // @ts-expect-error the input of a child graph is a change of its own channels
  await ctx.child(small, { nothing: 1 });
  // @ts-expect-error a child graph's input has the channel's type
  await ctx.child(small, { n: "1" });
  // @ts-expect-error a child graph's output is its state
  void (await ctx.child(small, {})).nothing;
});

// ── conditions ──

// @ts-expect-error a condition sees the state
small.edge("a", END, (state) => state.nothing === 1);
// @ts-expect-error a condition is true or false
small.edge("a", END, () => "yes");
// @ts-expect-error a condition is decided at once
small.edge("a", END, async () => true);

// ── options ──

// @ts-expect-error idempotency needs a key
small.node("x", { effects: { requiresIdempotency: true } }, async () => {});
// @ts-expect-error a key is for what requires it
small.node("x", { idempotencyKey: () => "key" }, async () => {});
// @ts-expect-error a key is text
small.node("x", { effects: { requiresIdempotency: true }, idempotencyKey: (state) => state.n }, async () => {});
// @ts-expect-error not a duration
small.node("x", { timeout: "soon" }, async () => {});
// @ts-expect-error a policy without maxAttempts
small.node("x", { retry: { baseDelay: "1 s" } }, async () => {});
// @ts-expect-error an option that is not there
small.node("x", { retries: 3 }, async () => {});
// @ts-expect-error options come before the function
small.node("x", async () => {}, { timeout: "1 s" });
// @ts-expect-error a value is no channel
graph("x", { state: { n: 0 } });
// @ts-expect-error a graph has a state
graph("x", {});
// @ts-expect-error an option that is not there
graph("x", { state: {}, maxStep: 5 });
// @ts-expect-error a fold is as written or by order key
graph("x", { state: {}, fold: "arrival" });
// @ts-expect-error the output is made of the state
graph("x", { state: { n: last(0) }, output: (state) => state.nothing });
// @ts-expect-error a channel's rule gives its value
channel(0, (sum, more: string) => sum + more);

// ── using a graph ──

declare const engine: Engine<typeof small>;
declare const run: Run<typeof small>;
// @ts-expect-error the input names no channel
void engine.start(small, { nothing: 1 });
// @ts-expect-error the input of a channel has another type
void engine.start(small, { words: [1] });
// @ts-expect-error by its name it takes the same input
void engine.start("small", { n: "1" });
// @ts-expect-error no such port
void run.resolve("missing", { ok: true });
// @ts-expect-error what the port takes has another type
void run.resolve("approve", { ok: 1 });
// @ts-expect-error the output is the state
void run.result().then((state) => state.nothing);
// @ts-expect-error a run of another graph
void ({} as Run<typeof lost> satisfies Run<typeof small>);
// @ts-expect-error the input of a graph under test, too
void crashEverywhere(small, { nothing: 1 });

// @ts-expect-error a workflow is no graph
describeGraph(workflow("none", async () => 1));

const lost = graph("lost", { state: { n: last(0) } })
  .node("goes", async () => goto("nowhere"))
  .edge(START, "goes");
// @ts-expect-error goto names no node
void createEngine({ store: "sqlite::memory:", definitions: [lost] });
// @ts-expect-error goto names no node, seen where it is a child
workflow("parent", async (ctx) => ctx.child(lost, {}));
const astray = graph("astray", { state: {} })
  .node("each", async (_ctx, _state, _item: number) => {})
  .node("goes", async () => goto("each"))
  .spread(START, "each", () => [1]);
// @ts-expect-error a goto would give a node that takes items none
void createEngine({ store: "sqlite::memory:", definitions: [astray] });

small.node(
  "pay",
  { effects: { requiresIdempotency: true }, idempotencyKey: (_state, item: Date) => item.toISOString() },
  // @ts-expect-error the key function takes another item than the node
  async (_ctx, _state, _item: string) => {},
);
// @ts-expect-error there is no such rule for conflicts
last(0, { conflict: "merge" });
