// Definitions of a server for agents: an approval, and the agent that offers it.

import { promise, workflow } from "reprise";
import { a2a } from "reprise/a2a";

export const approve = workflow(
  "approve",
  { ports: { approval: promise<{ ok: boolean }>() } },
  async (ctx, amount: number) => {
    const { ok } = await ctx.promise("approval", { show: { amount } });
    return ok ? `paid ${amount}` : "refused";
  },
);

export const extensions = [
  a2a({ name: "Payer", description: "Pays.", skills: [{ definition: approve, description: "Pays an amount." }] }),
];
