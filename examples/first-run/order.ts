// The definitions: the order and the calls it makes to the outside. Workers and clients share this file.

import { appendFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { promise, task, workflow, type TaskContext } from "reprise";

export interface Order {
  readonly id: string;
  readonly cents: number;
  readonly to: string;
}

/** The outside of this example: every call appends a line to the ledger. */
function callOutside(step: string, { runId, attempt, idempotencyKey }: TaskContext): void {
  const ledger = process.env["LEDGER"];
  const line = { run: runId, step, attempt, key: idempotencyKey, process: process.pid };
  if (ledger !== undefined) appendFileSync(ledger, `${JSON.stringify(line)}\n`);
}

export const charge = task("charge", { retry: { maxAttempts: 3, baseDelay: "150ms" } }, async (ctx, order: Order) => {
  callOutside("charge", ctx);
  await pause(60);
  if (ctx.attempt === 1) throw new Error("the card network did not answer");
  return { receipt: `ch-${order.id}`, cents: order.cents };
});

export const reserve = task("reserve", async (ctx, order: Order) => {
  callOutside("reserve", ctx);
  await pause(40);
  return { shelf: `B${order.id.length}` };
});

export const notify = workflow("notify", async (ctx, message: { to: string; text: string }) =>
  ctx.run("send mail", async (op) => {
    callOutside("send mail", op);
    await pause(30);
    return { mailed: message.to };
  }),
);

export const order = workflow(
  "order",
  { ports: { approval: promise<{ by: string }>() } },
  async (ctx, input: Order) => {
    const [payment, goods] = await Promise.all([ctx.task(charge, input), ctx.task(reserve, input)]);
    const approval = await ctx.promise("approval", { timeout: "1 hour", show: input });
    if (approval === undefined) return { status: "not approved" as const };

    const pickup = ctx.sleep("4 s"); // the courier comes then, also if this process dies
    const label = await ctx.run("print label", async (op) => {
      callOutside("print label", op);
      await pause(600); // a slow printer leaves time for a crash
      return `LABEL ${input.id}`;
    });
    await pickup;
    const { mailed } = await ctx.child(notify, { to: input.to, text: `${label} is on its way` });
    return {
      status: "shipped" as const,
      receipt: payment.receipt,
      shelf: goods.shelf,
      approvedBy: approval.by,
      mailed,
    };
  },
);
