// A run that waits for many approvals at once, and then for the end of all clicks: a run that has ended refuses them.

import { promise, workflow } from "reprise";

export const approvals = workflow(
  "approvals",
  { ports: { approve: promise<{ by: string }>(), close: promise<void>() } },
  async (ctx, count: number) => {
    const keys = Array.from({ length: count }, (_, n) => `call-${n}`);
    const asked = await Promise.all(keys.map((key) => ctx.promise("approve", { key, show: { refund: key } })));
    await ctx.promise("close");
    return asked.map(({ by }) => by);
  },
);
