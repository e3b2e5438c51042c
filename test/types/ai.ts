// The types of reprise/ai: ports, tools and results.

import { generateText, tool, type LanguageModel } from "ai";
import { promise, stream, workflow } from "reprise";
import { approvals, durable, tokens } from "reprise/ai";
import { z } from "zod";

declare const model: LanguageModel;

const ports = { words: tokens(), text: stream<string>(), approve: approvals(), go: promise<number>() };
const add = tool({ inputSchema: z.object({ a: z.number() }), execute: async ({ a }) => a + 1 });

export const typed = workflow("typed", { ports }, async (ctx) => {
  const ai = durable(ctx, { stream: "words", approve: "approve" });
  // @ts-expect-error A stream of texts takes no frames.
  durable(ctx, { stream: "text" });
  // @ts-expect-error A promise of a number is no approval.
  durable(ctx, { approve: "go" });
  // @ts-expect-error There is no such tool.
  ai.tools({ add }, { other: {} });
  const tools = ai.tools({ add }, { add: { approve: true, timeout: "1 s" } });
  const result = await ai.call(() => generateText({ model: ai.model(model), tools, prompt: "p" }));
  const text: string = result.text;
  for (const { output } of result.toolResults) if (typeof output === "number") output.toFixed();
  return text;
});
