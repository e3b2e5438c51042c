// Spans and metrics of model calls and tools.

import { generateText, stepCountIs, streamText, tool } from "ai";
import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { durable } from "reprise/ai";
import { openTelemetry } from "reprise/opentelemetry";
import { createMetrics } from "reprise/server";
import { z } from "zod";
import { recordSpans } from "../opentelemetry/span-recorder.ts";
import { scriptedModel } from "./scripted-model.ts";

const model = scriptedModel(
  [[{ tool: "weather", id: "call-a", input: { city: "Rome" } }], [{ text: "It rains." }]],
  "small",
);
const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `${city}: rain` });

const agent = workflow("agent", async (ctx, isStreamed: boolean) => {
  const ai = durable(ctx, { prices: { small: { input: 1, cachedInput: 0.1, output: 10 } } });
  const settings = { model: ai.model(model), tools: ai.tools({ weather }), prompt: "Rome?", stopWhen: stepCountIs(4) };
  return ai.call(async () => (isStreamed ? streamText(settings).text : (await generateText(settings)).text));
});

test.each([false, true])(
  "model calls and tools are spans with the attributes of gen_ai (streamed: %s)",
  async (isStreamed) => {
    const spans = recordSpans();
    const telemetry = openTelemetry({ tracerProvider: spans.provider });
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [agent], telemetry });
    const run = await engine.start(agent, isStreamed, { id: `run-${isStreamed}` });
    await run.result();
    await engine.close();
    expect(spans.tree()).toEqual([
      "start agent",
      "  chat small",
      "  chat small",
      "  execute_tool weather",
      "  invoke_workflow agent",
    ]);
    const [first, second] = spans.named("chat small");
    expect(first?.kind).toBe(2);
    expect(first?.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.conversation.id": run.id,
      "gen_ai.provider.name": "mock-provider",
      "gen_ai.request.model": "small",
      "gen_ai.request.max_tokens": 4096,
      "gen_ai.response.finish_reasons": ["tool-calls"],
      "gen_ai.usage.input_tokens": 100,
      "gen_ai.usage.output_tokens": 20,
      "gen_ai.usage.cache_read.input_tokens": 40,
      "reprise.command": "Operation(0)",
    });
    expect(second?.attributes["gen_ai.response.time_to_first_chunk"]).toBeGreaterThanOrEqual(0);
    expect(spans.named("execute_tool weather")[0]?.attributes).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "weather",
      "gen_ai.tool.call.id": "call-a",
    });
    expect(JSON.stringify(spans.spans().map(({ attributes }) => attributes))).not.toContain("Rome");
  },
);

test("contents are in spans only if they are asked for, and without secrets", async () => {
  const spans = recordSpans();
  const telemetry = openTelemetry({ tracerProvider: spans.provider, capture: "content" });
  const redact = { values: () => ["It rains."] };
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [agent], telemetry, redact });
  await (await engine.start(agent, false)).result();
  await engine.close();
  const [first, second] = spans.named("chat small");
  expect(first?.attributes["gen_ai.input.messages"]).toContain("Rome?");
  expect(first?.attributes["gen_ai.output.messages"]).toContain("weather");
  expect(second?.attributes["gen_ai.output.messages"]).not.toContain("It rains.");
  expect(spans.named("execute_tool weather")[0]?.attributes).toMatchObject({
    "gen_ai.tool.call.arguments": '{"city":"Rome"}',
    "gen_ai.tool.call.result": '"Rome: rain"',
  });
});

test("tokens and costs of answers are counted by model, and a replay counts none", async () => {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [agent] });
  using metrics = createMetrics(engine);
  const run = await engine.start(agent, false);
  await run.result();
  await run.verify();
  const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("reprise_ai_"));
  expect(lines.slice(0, 3)).toEqual([
    'reprise_ai_tokens_total{model="small",type="input"} 200',
    'reprise_ai_tokens_total{model="small",type="cached"} 80',
    'reprise_ai_tokens_total{model="small",type="output"} 40',
  ]);
  expect(lines[3]).toMatch(/^reprise_ai_cost_usd_total\{model="small"\} 0\.0005/);
});
