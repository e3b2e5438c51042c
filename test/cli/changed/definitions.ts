// The same workflow after a change of its code.

import { task, workflow } from "reprise";

export const bill = task("bill", (_ctx, cents: number) => ({ paid: cents }));
export const pay = workflow("pay", async (ctx, cents: number) => {
  const { paid } = await ctx.task(bill, cents);
  return { label: `L-${paid}`, at: new Date(0) };
});
