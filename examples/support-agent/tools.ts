// The tools of the agent: ordinary tools of the AI SDK. What makes them durable is in agent.ts.

import { task } from "reprise";
import { tool } from "ai";
import { z } from "zod";
import { findOrder, refundOrder } from "./shop.ts";

const refund = z.object({ order: z.string(), cents: z.number().int().positive(), why: z.string() });

/** Moves money: a task, so that any worker may execute it, with retries and a key that the bank knows it by. */
export const refundTask = task("refund", { retry: { maxAttempts: 5 } }, (ctx, input: z.infer<typeof refund>) =>
  refundOrder(input, ctx.idempotencyKey),
);

export const tools = {
  getOrder: tool({
    description: "Looks up an order: its price, and what is known to be wrong with it.",
    inputSchema: z.object({ order: z.string() }),
    execute: async ({ order }) => findOrder(order),
  }),
  // Its function is refundTask.
  refund: tool({
    description: "Refunds an order. A person approves it first.",
    inputSchema: refund,
    outputSchema: z.string(),
  }),
};
