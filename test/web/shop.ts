// Definitions of the browser tests. Files in the working directory of a worker decide how steps behave: `paid` makes every charge work,
// `go` lets a slow one end.

import { existsSync, watch } from "node:fs";
import { promise, queue, task, workflow } from "reprise";
import { z } from "zod";

/** Resolves when the file exists. */
function untilFile(name: string): Promise<void> {
  return new Promise((resolve) => {
    const watcher = watch(".", () => check());
    const check = (): void => {
      if (!existsSync(name)) return;
      watcher.close();
      resolve();
    };
    check();
  });
}

class PaymentTimeout extends Error {
  override readonly name = "PaymentTimeout";
}

function chargeCard(cents: number): { readonly payment: string; readonly paid: number } {
  if (!existsSync("paid")) throw new PaymentTimeout("no answer within 2 s");
  return { payment: "pay_81c4", paid: cents };
}

const order = z.object({
  order: z.string().describe("The number of the order"),
  cents: z.int(),
  /** What happens to the charge. */
  card: z.enum(["good", "refused", "slow"]).default("good"),
  approve: z.boolean().optional(),
});

export const charge = task(
  "charge",
  { queue: queue("payments"), retry: { maxAttempts: 3, baseDelay: "10 ms" } },
  async (ctx, { cents, card }: z.output<typeof order>) => {
    ctx.log.info(`charge ${(cents / 100).toFixed(2)} EUR`);
    if (card === "refused") return chargeCard(cents);
    if (card === "slow") await untilFile("go");
    return { payment: "pay_1", paid: cents };
  },
);

export const checkout = workflow(
  "checkout",
  { input: order, ports: { approval: promise(z.object({ ok: z.boolean() })) } },
  async (ctx, input) => {
    await ctx.run("reserve", () => ({ shelf: 7 }));
    const paid = await ctx.task(charge, input);
    if (input.approve !== true) return paid;
    const answer = await ctx.promise("approval", {
      show: { order: input.order, score: 0.71, limit: 0.6 },
      timeout: "2 days",
    });
    return { ...paid, approved: answer?.ok ?? false };
  },
);

/** Nothing ever ends its sleep in a test. */
export const reminder = workflow("reminder", async (ctx, to: string) => {
  await ctx.sleep("1 hour");
  return to;
});

/** No worker of the tests has the label. */
export const render = workflow("render", async (ctx, _scene: string) => {
  await ctx.task(draw, undefined);
});
export const draw = task("draw", { label: "gpu" }, () => "drawn");

export const shop = [checkout, charge, reminder, render, draw];
