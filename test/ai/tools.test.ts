// Calls of tools are steps, tasks or workflow code, and people approve them.

import { generateText, stepCountIs, tool } from "ai";
import { expect, test } from "vitest";
import { append, graph, START, task, workflow, type RepriseError } from "reprise";
import { approvals, durable, type Approval } from "reprise/ai";
import { createTestEngine } from "reprise/testing";
import { z } from "zod";
import { rejection, until } from "../engine/world.ts";
import { operationsOf, scriptedModel, type Content } from "./scripted-model.ts";

const callOf = (name: string, id: string, input: unknown): Content => ({ tool: name, id, input });

test("a tool is a step, a task or workflow code, and the calls of one answer run at once", async () => {
  let running = 0;
  const both = Promise.withResolvers<void>();
  const inputSchema = z.object({ n: z.number() });
  const asTask = task("double", async (_ctx, { n }: { n: number }) => n * 2);
  const model = scriptedModel([
    [
      callOf("step", "1", { n: 1 }),
      callOf("work", "2", { n: 2 }),
      callOf("code", "3", { n: 3 }),
      callOf("step", "4", { n: 4 }),
    ],
    [{ text: "done" }],
  ]);
  const agent = workflow("agent", async (ctx) => {
    const ai = durable(ctx);
    const tools = ai.tools(
      {
        step: tool({
          inputSchema,
          async *execute({ n }) {
            yield "preliminary";
            // Neither call ends before the other has begun.
            if (++running === 2) both.resolve();
            await both.promise;
            yield `step ${n}`;
          },
        }),
        work: tool({ inputSchema, outputSchema: z.number() }),
        code: tool({
          inputSchema,
          execute: async ({ n }) => {
            await ctx.sleep("1 hour");
            return ctx.run("inner", n, (_op, given) => `inner ${given}`);
          },
        }),
      },
      { step: { timeout: "1 minute" }, work: { as: asTask }, code: { as: "inline" } },
    );
    const result = await ai.call(() =>
      generateText({ model: ai.model(model), tools, prompt: "p", stopWhen: stepCountIs(4) }),
    );
    return result.steps[0]?.toolResults.map(({ toolCallId, output }) => `${toolCallId} ${String(output)}`);
  });
  await using engine = await createTestEngine({ definitions: [agent, asTask] });
  const run = await engine.start(agent);
  await engine.clock.advance("2 hours");
  expect(await run.result()).toEqual(["1 step 1", "2 4", "3 inner 3", "4 step 4"]);
  expect((await operationsOf(run)).map(({ name }) => name)).toEqual([
    "chat scripted",
    "tool step",
    "tool step",
    "inner",
    "chat scripted",
  ]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an error of a tool is an answer for the model, after the attempts of its policy", async () => {
  let calls = 0;
  const flaky = tool({
    inputSchema: z.object({}),
    execute: async (): Promise<string> => {
      calls += 1;
      throw new Error("out of order");
    },
  });
  const model = scriptedModel([[callOf("flaky", "1", {})], [{ text: "sorry" }]]);
  const agent = workflow("agent", async (ctx) => {
    const ai = durable(ctx);
    const tools = ai.tools({ flaky }, { flaky: { retry: { maxAttempts: 3 } } });
    return (await ai.call(() => generateText({ model: ai.model(model), tools, prompt: "p", stopWhen: stepCountIs(4) })))
      .text;
  });
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe("sorry");
  expect(calls).toBe(3);
  expect(JSON.stringify(model.doGenerateCalls[1]?.prompt.at(-1))).toContain("out of order");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

// ── approvals ──

const refunds: string[] = [];
const refund = tool({
  inputSchema: z.object({ order: z.string(), cents: z.number().max(5000) }),
  execute: async ({ order, cents }) => {
    refunds.push(`${order} ${cents}`);
    return { order, cents };
  },
  toModelOutput: ({ output }) => ({ type: "text", value: `refunded ${output.cents} of ${output.order}` }),
});

const approvalScript = (ids: readonly string[]): readonly (readonly Content[])[] => [
  ids.map((id, at) => callOf("refund", id, { order: `o${at}`, cents: 1000 + at })),
  [{ text: "done" }],
];

function supportOf(ids: readonly string[]) {
  const model = scriptedModel(approvalScript(ids));
  const support = workflow("support", { ports: { approve: approvals() } }, async (ctx) => {
    const ai = durable(ctx, { approve: "approve" });
    const tools = ai.tools({ refund }, { refund: { approve: ({ cents }) => cents > 1000 } });
    const { text } = await ai.call(() =>
      generateText({ model: ai.model(model), tools, prompt: "p", stopWhen: stepCountIs(4) }),
    );
    return text;
  });
  return { model, support };
}

test("approvals of one answer wait at once; edits are checked again, and a refusal tells the model why", async () => {
  refunds.length = 0;
  const { model, support } = supportOf(["a", "b", "c", "d", "e"]);
  await using engine = await createTestEngine({ definitions: [support] });
  const run = await engine.start(support);
  await until(async () => (await Array.fromAsync(engine.promises())).length === 4);
  const open = await Array.fromAsync(engine.promises({ name: "approve" }));
  expect(open.map(({ key, show }) => [key, show])).toEqual(
    ["b", "c", "d", "e"].map((key, at) => [key, { tool: "refund", input: { order: `o${at + 1}`, cents: 1001 + at } }]),
  );
  // The call without approval is over.
  expect(refunds).toEqual(["o0 1000"]);
  const answers: Record<string, Approval> = {
    e: { ok: true },
    d: { ok: true, input: { order: "o3", cents: 9000 } },
    c: { ok: true, input: { order: "o2", cents: 7 } },
    b: { ok: false, reason: "no receipt" },
  };
  await until(async () => (await operationsOf(run)).length === 2);
  await engine.crash();
  for (const [key, answer] of Object.entries(answers)) await run.resolve("approve", answer, { key, by: "Eve" });
  expect(await run.result()).toBe("done");
  expect(refunds.toSorted()).toEqual(["o0 1000", "o2 7", "o4 1004"]);
  const received = JSON.stringify(model.doGenerateCalls[1]?.prompt.at(-1));
  for (const text of ["denied: no receipt", "refunded 7 of o2", "refunded 1004 of o4", "does not match its schema"])
    expect(received).toContain(text);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an answer counts for one call only, even if a model uses the id of a call twice", async () => {
  refunds.length = 0;
  const model = scriptedModel([
    [callOf("refund", "call", { order: "first", cents: 2000 })],
    [callOf("refund", "call", { order: "second", cents: 3000 })],
    [{ text: "done" }],
  ]);
  const support = workflow("support", { ports: { approve: approvals() } }, async (ctx) => {
    const ai = durable(ctx, { approve: "approve" });
    const tools = ai.tools({ refund }, { refund: { approve: true } });
    return (await ai.call(() => generateText({ model: ai.model(model), tools, prompt: "p", stopWhen: stepCountIs(4) })))
      .text;
  });
  await using engine = await createTestEngine({ definitions: [support] });
  const run = await engine.start(support);
  await run.resolve("approve", { ok: true }, { key: "call" });
  await until(async () => (await Array.fromAsync(engine.promises())).some(({ key }) => key === "call#2"));
  expect(refunds).toEqual(["first 2000"]);
  await run.resolve("approve", { ok: true }, { key: "call#2" });
  expect(await run.result()).toBe("done");
  expect(refunds).toEqual(["first 2000", "second 3000"]);
});

test("nodes of a graph wait for approvals under keys of their own", async () => {
  refunds.length = 0;
  const model = scriptedModel([[callOf("refund", "call", { order: "x", cents: 2000 })], [{ text: "done" }]]);
  const support = graph("support", { ports: { approve: approvals() }, state: { texts: append<string>() } })
    .node("ask", async (ctx, _state, item: string) => {
      const ai = durable(ctx, { approve: "approve" });
      const tools = ai.tools({ refund }, { refund: { approve: true } });
      const { text } = await ai.call(() =>
        generateText({ model: ai.model(model), tools, prompt: item, stopWhen: stepCountIs(4) }),
      );
      return { texts: [`${item} ${text}`] };
    })
    .spread(START, "ask", () => ["a", "b"]);
  await using engine = await createTestEngine({ definitions: [support] });
  const run = await engine.start(support, {});
  await until(async () => (await Array.fromAsync(engine.promises())).length === 2);
  const keys = (await Array.fromAsync(engine.promises())).map(({ key }) => key!);
  expect(keys.every((key) => key.startsWith("call@1.1-")) && new Set(keys).size === 2).toBe(true);
  for (const key of keys) await run.resolve("approve", { ok: true }, { key });
  expect((await run.result()).texts).toEqual(["a done", "b done"]);
  expect(refunds).toHaveLength(2);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an answer that is none is refused before it is written", async () => {
  const { support } = supportOf(["a", "b"]);
  await using engine = await createTestEngine({ definitions: [support] });
  const run = await engine.start(support);
  for (const wrong of [true, {}, { ok: "yes" }, { ok: true, reason: 5 }, { ok: true, more: 1 }])
    expect(await rejection(run.resolve("approve", wrong as never, { key: "b" }))).toMatchObject({ code: "BAD_INPUT" });
  await run.resolve("approve", { ok: true }, { key: "b" });
  expect(await run.result()).toBe("done");
});

test("wrong options of tools and models are refused when they are given", async () => {
  const inputSchema = z.object({});
  const wrong = workflow("wrong", { ports: { approve: approvals() } }, async (ctx) => {
    const codes: string[] = [];
    const refused = (call: () => unknown): void => {
      try {
        call();
      } catch (error) {
        codes.push(`${(error as RepriseError).code} ${(error as Error).message.slice(0, 40)}`);
      }
    };
    const ai = durable(ctx);
    const plain = tool({ inputSchema, execute: async () => 1 });
    refused(() => durable(ctx, { retries: 3 } as never));
    refused(() => durable(ctx, { prices: { a: { input: -1, output: 1 } } }));
    refused(() => ai.model(5 as never));
    refused(() => ai.tools({ plain }, { other: {} } as never));
    refused(() => ai.tools({ plain }, { plain: { as: "later" as never } }));
    refused(() => ai.tools({ plain }, { plain: { approve: true } }));
    refused(() => ai.tools({ plain: tool({ inputSchema }) as never }, { plain: { as: "run" } }));
    return codes;
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  const codes = await (await engine.start(wrong)).result();
  expect(codes).toHaveLength(7);
  expect(codes.every((code) => code.startsWith("BAD_OPTIONS "))).toBe(true);
});
