// The agent: a loop of the AI SDK inside a workflow. Answers of the model and of tools are recorded, words are streamed, refunds
// wait for a person, and the budget holds whatever crashes.

import { isStepCount, streamText } from "ai";
import { workflow } from "reprise";
import { approvals, durable, tokens } from "reprise/ai";
import { models, prices } from "./models.ts";
import { refundTask, tools } from "./tools.ts";

export const support = workflow(
  "support",
  { ports: { words: tokens(), approve: approvals() }, budget: { usd: 0.05 } },
  async (ctx, question: string) => {
    const ai = durable(ctx, { stream: "words", approve: "approve", models, prices });
    return ai.call(async () => {
      const answer = streamText({
        model: ai.model("fast"),
        tools: ai.tools(tools, { refund: { as: refundTask, approve: true } }),
        instructions: "You help customers of a shop. Look orders up before you refund them. Answer in a few sentences.",
        prompt: question,
        maxOutputTokens: 1_000,
        stopWhen: isStepCount(10),
      });
      return answer.text;
    });
  },
);

export const definitions = [support, refundTask];

export const QUESTION = "Order 1042 arrived broken, and order 1043 was charged twice. Please give me my money back.";
