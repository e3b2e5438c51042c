// A workflow after a change of the input that it passes to its task.

import { promise, task, workflow } from "reprise";

export const send = task("send", (_ctx, cents: number) => ({ sent: cents }));
export const invoice = workflow(
  "invoice",
  { ports: { go: promise<string>() }, determinism: "per-type" },
  async (ctx) => {
    await ctx.task(send, 2);
    return ctx.promise("go");
  },
);
