// What graphs infer. Checked by `tsc`, never run.

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
  task,
  workflow,
  type Channel,
  type End,
  type InputOf,
  type NodeContext,
  type OutputOf,
  type Start,
} from "reprise";
import { describeGraph } from "reprise/describe";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";

/** Compiles when the two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._same: Same<A, B> extends true ? [] : [never]): void {}

// ── API.md, program 2: an agent with tools and a person's approval ──

interface Message {
  role: "user" | "assistant" | "tool";
  text: string;
  final?: string;
  tools?: string[];
}
declare const model: { chat(request: { messages: readonly Message[] }, signal: AbortSignal): Promise<Message> };
declare function runTool(name: string): Promise<string>;
export const agent = graph("agent", {
  state: { messages: append<Message>(), answer: last<string | null>(null) },
  ports: { approve: promise<{ ok: boolean }>() },
  output: (state) => state.answer,
})
  .node("think", { timeout: "60s", effects: { recordable: true } }, async (ctx, state) => {
    const reply = await ctx.run("llm", { messages: state.messages }, (op, request) =>
      model.chat(request, op.abortSignal),
    );
    return { messages: [reply], answer: reply.final ?? null };
  })
  .node("approve", async (ctx, state) => {
    const decision = await ctx.promise("approve", { timeout: "1 day", show: state.messages.at(-1)?.tools });
    same<typeof decision, { ok: boolean } | undefined>();
    return decision?.ok === true ? goto("act") : goto(END, { answer: "refused" });
  })
  .node("act", async (ctx, state) => {
    const results = await Promise.all(
      (state.messages.at(-1)?.tools ?? []).map((tool) => ctx.run(tool, () => runTool(tool))),
    );
    return { messages: results.map((text): Message => ({ role: "tool", text })) };
  })
  .edge(START, "think")
  .edge("think", END, (state) => state.answer !== null)
  .edge("think", "approve")
  .edge("act", "think");

// The input is a first change, the output what `output` gives.
same<InputOf<typeof agent>, { readonly messages?: readonly Message[]; readonly answer?: string | null }>();
same<OutputOf<typeof agent>, string | null>();

// ── state: every kind of channel, as nodes, conditions, items and the output see it ──

interface Seen {
  readonly words: readonly string[];
  readonly newest: number | undefined;
  readonly facts: { a?: number; b?: string };
  readonly best: number;
  readonly total: bigint;
}
export const every = graph("every", {
  state: {
    words: append<string>(["first"]),
    newest: last<number | undefined>(undefined),
    facts: merge<{ a?: number; b?: string }>({}),
    best: max(0),
    // A change need not look like the value.
    total: channel(0n, (sum, cents: number) => sum + BigInt(cents)),
  },
  output: (state) => {
    same<typeof state, Seen>();
    return { total: state.total };
  },
  maxSteps: 50,
  maxConcurrentNodes: 4,
  queueDepth: 100,
  defaultNodeTimeout: "10 s",
  backpressureTimeout: "1 minute",
  deadline: "2 days",
  fold: "order-key",
  version: 2,
})
  .node("all", async (ctx, state) => {
    same<typeof state, Seen>();
    same<typeof ctx, NodeContext<{}>>();
    same<typeof ctx.step, number>();
    return { words: ["x"], newest: 1, facts: { a: 1 }, best: 2, total: 500 };
  })
  .node("some", (_ctx, state) => ({ newest: state.newest }))
  .node("none", () => {})
  .node("labels", async (ctx) => ctx.label("here"))
  .node("either", async (_ctx, state) => (state.best > 1 ? { best: 3 } : undefined))
  .node("throws", async () => {
    throw new Error("always");
  })
  .node("each", async (_ctx, state, item: { id: string; n: number }) => ({ words: [item.id], best: state.best }))
  .edge(START, ["all", "some", "none", "labels", "either"])
  .edge("all", END, (state) => {
    same<typeof state, Seen>();
    return state.best > 2;
  })
  .spread("all", "each", (state) => state.words.map((id, n) => ({ id, n })))
  .join(["each", "some"], "throws");
same<OutputOf<typeof every>, { total: bigint }>();

// Names that may be written, in the order an editor offers them.
same<Parameters<typeof every.join>[1], "all" | "some" | "none" | "labels" | "either" | "throws">();
same<Parameters<typeof every.spread>[1], "each">();
same<Parameters<typeof agent.edge>[0], "think" | "approve" | "act" | Start>();
same<Parameters<typeof agent.edge>[1], "think" | "approve" | "act" | End | readonly ("think" | "approve" | "act")[]>();

const described: readonly string[] = describeGraph(agent).nodes.map(({ name }) => name);
void described;

// Without `output` the state is the output.
const plain = graph("plain", { state: { n: last(0) } })
  .node("add", async (_ctx, state) => ({ n: state.n + 1 }))
  .edge(START, "add");
same<OutputOf<typeof plain>, { readonly n: number }>();

// A rule of one's own is a value like any other.
const longest: Channel<string> = channel("", (longer, text) => (text.length > longer.length ? text : longer));
void longest;

// ── goto: one, several, END, with a change; checked where the graph is used ──

const goes = graph("goes", { state: { way: append<string>() } })
  .node("a", async (ctx) => (ctx.random() > 0.5 ? goto(["b", "c"], { way: ["a"] }) : goto("b")))
  .node("b", async () => goto(END, { way: ["b"] }))
  .node("c", async () => {})
  .edge(START, "a");

// ── policies ──

const payments = graph("payments", { state: { order: last({ id: "", cents: 0 }) } })
  .node(
    "pay",
    {
      retry: {
        maxAttempts: 5,
        baseDelay: "1 s",
        maxDelay: "1 minute",
        retryable: (error) => error instanceof TypeError,
      },
      timeout: 5_000,
      effects: { requiresIdempotency: true, recordable: true },
      idempotencyKey: (state) => {
        same<typeof state, { readonly order: { id: string; cents: number } }>();
        return state.order.id;
      },
    },
    async (ctx) => {
      same<typeof ctx.idempotencyKey, string>();
    },
  )
  .edge(START, "pay");

// A key function that leaves its item untyped does not disturb the type of the node's item.
graph("keyed", { state: { sent: append<string>() } })
  .node(
    "send",
    { effects: { requiresIdempotency: true }, idempotencyKey: (state, item) => `${state.sent.length}-${item.id}` },
    async (_ctx, state, item: { id: string }) => {
      same<[typeof state, typeof item], [{ readonly sent: readonly string[] }, { id: string }]>();
      return { sent: [item.id] };
    },
  )
  .spread(START, "send", () => [{ id: "a" }]);

// ── what a node may ask for; tasks, children, graphs in graphs ──

const double = task("double", (_ctx, n: number) => n * 2);
const greet = workflow("greet", async (_ctx, name: string) => `Hello, ${name}`);
const whole = graph("whole", {
  state: { results: append<string | number>() },
  ports: { progress: stream<number>(), go: promise() },
})
  .node("part", async (ctx) => {
    const doubled = await ctx.task(double, 21, { retry: { maxAttempts: 2 }, timeout: "1 s" });
    same<typeof doubled, number>();
    const greeting = await ctx.child(greet, "Ada", { id: "ada" });
    same<typeof greeting, string>();
    const inner = await ctx.child(agent, { messages: [{ role: "user", text: "hi" }] });
    same<typeof inner, string | null>();
    const kept = await ctx.run("recorded", { doubled }, (op, request) => {
      op.emit("progress", op.attempt);
      return request.doubled;
    });
    same<typeof kept, number>();
    const went: void = await ctx.promise("go", { show: "press the button" });
    ctx.emit("progress", 1);
    ctx.send("mail", { greeting, went });
    return { results: [doubled, greeting, kept] };
  })
  .edge(START, "part");

const parent = workflow("parent", async (ctx) => {
  const answer = await ctx.child(agent, { messages: [] });
  same<typeof answer, string | null>();
  return (await ctx.child(plain, {})).n;
});

export async function useGraphs(): Promise<void> {
  const definitions = [agent, every, plain, goes, payments, whole, parent, greet, double] as const;
  await using engine = await createEngine({ store: "sqlite::memory:", definitions });
  const run = await engine.start(agent, { messages: [{ role: "user", text: "hi" }] }, { id: "a" });
  await run.resolve("approve", { ok: true });
  const answer = await run.result();
  same<typeof answer, string | null>();
  // By its name it is the same.
  await engine.get("agent", "a").resolve("approve", { ok: false });
  const { n } = await (await engine.start(plain, {})).result();
  same<typeof n, number>();
  for await (const { value, reset } of engine.get(whole, "w").stream("progress"))
    if (reset === undefined) same<typeof value, number>();
  await engine.schedule("nightly", plain, { n: 1 }, { cron: "0 3 * * *" });
}

export async function testGraphs(): Promise<void> {
  await using engine = await createTestEngine({ definitions: [agent], stubs: [stub("llm", () => ({ text: "" }))] });
  const run = await engine.start(agent, {});
  await run.resolve("approve", { ok: true });
  const { output } = await crashEverywhere(plain, { n: 1 });
  same<typeof output, { readonly n: number }>();
}
