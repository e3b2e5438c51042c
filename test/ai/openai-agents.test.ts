// The OpenAI Agents SDK inside a run: recorded calls, tools as steps, interruptions as promises.

import {
  Agent,
  handoff,
  OpenAIProvider,
  tool,
  Usage,
  type Model,
  type ModelRequest,
  type StreamEvent,
} from "@openai/agents";
import { expect, test } from "vitest";
import { append, graph, START, task, workflow } from "reprise";
import { approvals, durable, tokens, type TokenFrame } from "reprise/ai/openai";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { z } from "zod";
import { rejection, until } from "../engine/world.ts";
import { startChatServer } from "./openai-server.ts";
import { operationsOf } from "./scripted-model.ts";

interface Call {
  readonly name: string;
  readonly id: string;
  readonly input: unknown;
}
type Round = string | readonly Call[];

/** Answers by the number of rounds in the input, so it has no memory that a crash could lose. */
class RoundModel implements Model {
  readonly rounds: number[] = [];
  readonly requests: ModelRequest[] = [];
  readonly #script: readonly Round[];

  constructor(script: readonly Round[]) {
    this.#script = script;
  }

  #next(request: ModelRequest): Parameters<typeof outputOf>[0] {
    const items = typeof request.input === "string" ? [] : request.input;
    const calls = items.filter(({ type }) => type === "function_call").length;
    let round = 0;
    for (let seen = 0; seen < calls; round += 1) seen += (this.#script[round] as readonly Call[]).length;
    this.rounds.push(round);
    this.requests.push(request);
    return this.#script[round] ?? "nothing more";
  }

  async getResponse(request: ModelRequest) {
    return { usage: new Usage(USAGE), output: outputOf(this.#next(request)), responseId: "r" };
  }

  async *getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent> {
    const round = this.#next(request);
    yield { type: "response_started" };
    if (typeof round === "string")
      for (const delta of round.split(/(?<= )/)) yield { type: "output_text_delta", delta };
    yield { type: "model", event: { raw: "raw event" } };
    yield {
      type: "response_done",
      response: { id: "r", usage: USAGE, output: outputOf(round), providerData: { raw: 1 } },
    };
  }
}

const USAGE = { requests: 1, inputTokens: 30, outputTokens: 5, totalTokens: 35 };

function outputOf(round: Round) {
  if (typeof round === "string")
    return [
      {
        type: "message" as const,
        role: "assistant" as const,
        status: "completed" as const,
        content: [{ type: "output_text" as const, text: round }],
      },
    ];
  return round.map(({ name, id, input }) => ({
    type: "function_call" as const,
    callId: id,
    name,
    arguments: JSON.stringify(input),
    status: "completed" as const,
  }));
}

const parameters = z.object({ city: z.string() });
const weather = tool({
  name: "weather",
  description: "The weather",
  parameters,
  execute: async ({ city }) => `${city}: rain`,
});

const TWO_CALLS: readonly Round[] = [
  [
    { name: "weather", id: "call-a", input: { city: "Rome" } },
    { name: "weather", id: "call-b", input: { city: "Oslo" } },
  ],
  "It rains everywhere.",
];

test.each([false, true])(
  "an agent records one step per model call and per tool call (streamed: %s)",
  async (isStreamed) => {
    const model = new RoundModel(TWO_CALLS);
    const ask = workflow("ask", { ports: { words: tokens() } }, async (ctx, prompt: string) => {
      const ai = durable(ctx, {
        models: { fast: model },
        prices: { fast: { input: 1, output: 10 } },
        ...(isStreamed && { stream: "words" as const }),
      });
      const agent = new Agent({ name: "helper", instructions: "Help.", model: "fast", tools: ai.tools([weather]) });
      const result = await ai.run(agent, prompt);
      return { text: result.finalOutput, items: result.newItems.length };
    });
    await using engine = await createTestEngine({ definitions: [ask] });
    const run = await engine.start(ask, "Weather?");
    expect(await run.result()).toEqual({ text: "It rains everywhere.", items: 5 });
    expect(model.rounds).toEqual([0, 1]);
    const steps = await operationsOf(run);
    expect(steps.map(({ name }) => name)).toEqual(["chat fast", "tool weather", "tool weather", "chat fast"]);
    expect(steps[1]).toMatchObject({ input: { city: "Rome" }, result: "Rome: rain" });
    expect(JSON.stringify(steps)).not.toContain("raw");
    const frames: TokenFrame[] = [];
    for await (const { value } of run.stream("words")) if (value !== undefined) frames.push(value);
    expect(frames.map(({ part }) => part)).toEqual(isStreamed ? ["begin", "end", "begin", "text", "end"] : []);
    if (isStreamed) expect(frames.at(-1)).toMatchObject({ finish: "stop", usage: { tokens: 35, usd: 80 / 1e6 } });
    expect(await run.verify()).toMatchObject({ status: "same" });
    expect(model.rounds).toEqual([0, 1]);
  },
);

test("interruptions are promises that wait at once; people edit inputs and refuse calls", async () => {
  const refunds: string[] = [];
  const refund = tool({
    name: "refund",
    description: "Refunds",
    parameters: z.object({ order: z.string(), cents: z.number() }),
    needsApproval: async (_context, { cents }) => cents > 100,
    execute: async ({ order, cents }) => {
      refunds.push(`${order} ${cents}`);
      return `refunded ${cents}`;
    },
  });
  const model = new RoundModel([
    ["a", "b", "c"].map((id, at) => ({ name: "refund", id, input: { order: id, cents: at === 0 ? 50 : 1000 } })),
    "done",
  ]);
  const support = workflow("support", { ports: { approve: approvals() } }, async (ctx) => {
    const ai = durable(ctx, { approve: "approve", models: { m: model } });
    const agent = new Agent({ name: "support", instructions: "", model: "m", tools: ai.tools([refund]) });
    return (await ai.run(agent, "p")).finalOutput;
  });
  await using engine = await createTestEngine({ definitions: [support] });
  const run = await engine.start(support);
  await until(async () => (await Array.fromAsync(engine.promises())).length === 2);
  const open = await Array.fromAsync(engine.promises());
  expect(open.map(({ key, show }) => [key, show])).toEqual([
    ["b", { tool: "refund", input: { order: "b", cents: 1000 } }],
    ["c", { tool: "refund", input: { order: "c", cents: 1000 } }],
  ]);
  await until(async () => (await operationsOf(run)).length === 2);
  await engine.crash();
  await run.resolve("approve", { ok: false, reason: "no receipt" }, { key: "c", by: "Eve" });
  await run.resolve("approve", { ok: true, input: { order: "b", cents: 7 } }, { key: "b", by: "Eve" });
  expect(await run.result()).toBe("done");
  expect(refunds).toEqual(["a 50", "b 7"]);
  expect(model.rounds).toEqual([0, 1]);
  expect(JSON.stringify(model.requests[1]?.input)).toContain("denied: no receipt");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("tools are tasks or workflow code, and `approve` asks before any of them", async () => {
  const double = task("double", async (_ctx, { n }: { n: number }) => n * 2);
  const make = (name: string, execute: (input: { n: number }) => Promise<unknown>) =>
    tool({ name, description: name, parameters: z.object({ n: z.number() }), execute });
  const model = new RoundModel([
    [
      { name: "work", id: "1", input: { n: 2 } },
      { name: "code", id: "2", input: { n: 3 } },
      { name: "ask", id: "3", input: { n: 4 } },
    ],
    "done",
  ]);
  const agents = workflow("agents", { ports: { approve: approvals() } }, async (ctx) => {
    const ai = durable(ctx, { approve: "approve", models: { m: model } });
    const code = make("code", async ({ n }) => {
      await ctx.sleep("1 hour");
      return `slept ${n}`;
    });
    const tools = ai.tools([make("work", async () => "never"), code, make("ask", async ({ n }) => `asked ${n}`)], {
      work: { as: double },
      code: { as: "inline" },
      ask: { approve: true },
    });
    const { newItems } = await ai.run(new Agent({ name: "a", instructions: "", model: "m", tools }), "p");
    return newItems.flatMap((item) => (item.type === "tool_call_output_item" ? [String(item.output)] : []));
  });
  await using engine = await createTestEngine({ definitions: [agents, double] });
  const run = await engine.start(agents);
  await run.resolve("approve", { ok: true, input: { n: 5 } }, { key: "3" });
  await engine.clock.advance("2 hours");
  expect(await run.result()).toEqual(["4", "slept 3", "asked 5"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an agent with a handoff, killed at every commit, ends with the same output and repeats no committed call", async () => {
  let calls = 0;
  const counted = tool({
    name: "weather",
    description: "",
    parameters,
    execute: async ({ city }) => `${++calls} ${city}`.slice(2),
  });
  const script: readonly Round[] = [
    [{ name: "transfer_to_second", id: "h", input: {} }],
    [{ name: "weather", id: "w", input: { city: "Rome" } }],
    "finished",
  ];
  const model = new RoundModel(script);
  const agents = workflow("agents", async (ctx) => {
    const ai = durable(ctx, { models: { m: model } });
    const second = new Agent({ name: "second", instructions: "", model: "m", tools: ai.tools([counted]) });
    const first = Agent.create({ name: "first", instructions: "", model: "m", handoffs: [handoff(second)] });
    const result = await ai.run(first, "p");
    return `${result.lastAgent?.name} ${String(result.finalOutput)}`;
  });
  const { output, crashes } = await crashEverywhere(agents, undefined);
  expect(output).toBe("second finished");
  expect(crashes).toBeGreaterThan(4);
  // Three calls and one tool per execution; a crash repeats at most the one that was under way.
  expect(model.rounds.length).toBeLessThanOrEqual(3 + crashes * 3 + crashes);
});

test("nodes of a graph run agents, and a replay calls no model", async () => {
  const model = new RoundModel(TWO_CALLS);
  const agents = graph("agents", { state: { texts: append<string>() } })
    .node("think", async (ctx) => {
      const ai = durable(ctx, { models: { m: model } });
      const agent = new Agent({ name: "a", instructions: "", model: "m", tools: ai.tools([weather]) });
      return { texts: [String((await ai.run(agent, "p")).finalOutput)] };
    })
    .edge(START, "think");
  await using engine = await createTestEngine({ definitions: [agents] });
  const run = await engine.start(agents, {});
  expect((await run.result()).texts).toEqual(["It rains everywhere."]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(model.rounds).toEqual([0, 1]);
});

test("an agent calls a server over HTTP; the engine repeats what the server refused, and the journal has no key", async () => {
  await using server = await startChatServer(({ messages }, n) => {
    if (n === 0) return { status: 503, headers: { "retry-after": "7", "x-should-retry": "false" } };
    return messages.some(({ role }) => role === "tool")
      ? { text: "Take an umbrella." }
      : { calls: [{ id: "call-1", name: "weather", input: { city: "Oslo" } }] };
  });
  const provider = new OpenAIProvider({ baseURL: server.url, apiKey: "secret-key", useResponses: false });
  const local = await provider.getModel("local");
  const ask = workflow("ask", { ports: { words: tokens() } }, async (ctx) => {
    const ai = durable(ctx, { stream: "words", models: { local } });
    const agent = new Agent({ name: "a", instructions: "", model: ai.model("local"), tools: ai.tools([weather]) });
    return (await ai.run(agent, "Oslo?")).finalOutput;
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  const result = run.result();
  await until(async () => {
    await engine.clock.advance("1 s");
    return server.requests.length >= 3;
  });
  expect(await result).toBe("Take an umbrella.");
  expect(server.requests).toHaveLength(3);
  expect(JSON.stringify(await Array.fromAsync(run.journal()))).not.toContain("secret-key");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test.each([false, true])(
  "an answer that does not report its tokens costs its reservation (streamed: %s)",
  async (isStreamed) => {
    class Silent extends RoundModel {
      override async getResponse(request: ModelRequest) {
        return { ...(await super.getResponse(request)), usage: new Usage() };
      }
      override async *getStreamedResponse(request: ModelRequest): AsyncIterable<StreamEvent> {
        for await (const event of super.getStreamedResponse(request)) {
          const usage = { requests: 1, inputTokens: 0, outputTokens: 0, totalTokens: 0 };
          yield event.type === "response_done" ? { ...event, response: { ...event.response, usage } } : event;
        }
      }
    }
    const ask = workflow("ask", { ports: { words: tokens() }, budget: { usd: 1 } }, async (ctx) => {
      const stream = isStreamed ? { stream: "words" as const } : {};
      const ai = durable(ctx, {
        ...stream,
        models: { m: new Silent(["yes"]) },
        prices: { m: { input: 1, output: 10 } },
      });
      return (await ai.run(new Agent({ name: "a", instructions: "", model: "m" }), "p")).finalOutput;
    });
    await using engine = await createTestEngine({ definitions: [ask] });
    const run = await engine.start(ask);
    expect(await run.result()).toBe("yes");
    const { spent, lost } = (await run.budget())!;
    expect([spent.usd, lost.calls]).toEqual([0, 1]);
    // 4,096 tokens of output.
    expect(lost.usd).toBeGreaterThan(0.04);
  },
);

test("wrong options are refused when they are given, and a tool without a port for its approval when it asks", async () => {
  const model = new RoundModel([[{ name: "weather", id: "1", input: { city: "x" } }], "done"]);
  const wrong = workflow("wrong", async (ctx) => {
    const codes: unknown[] = [];
    const ai = durable(ctx, { models: { m: model } });
    for (const call of [
      () => durable(ctx, { more: 1 } as never),
      () => ai.tools([weather], { other: {} }),
      () => ai.tools([weather], { weather: { approve: true } }),
    ])
      try {
        call();
      } catch (error) {
        codes.push((error as { code: string }).code);
      }
    const asks = tool({ name: "weather", description: "", parameters, needsApproval: true, execute: async () => "x" });
    const agent = new Agent({ name: "a", instructions: "", model: "m", tools: ai.tools([asks]) });
    if (codes.length === 3) await ai.run(agent, "p");
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  expect(await rejection((await engine.start(wrong)).result())).toMatchObject({
    cause: { code: "BAD_OPTIONS", message: expect.stringContaining("approvals()") as string },
  });
});
