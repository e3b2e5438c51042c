// A workflow with keyed promises, for the tests of the command line.

import { promise, workflow } from "reprise";

export const release = workflow(
  "release",
  { ports: { approve: promise<{ ok: boolean }>(), sign: promise<string>() } },
  async (ctx) => {
    const [ann, bob] = await Promise.all([
      ctx.promise("approve", { key: "ann", show: { build: 7 } }),
      ctx.promise("approve", { key: "bob jr", timeout: "1 day" }),
    ]);
    return [ann.ok, bob?.ok ?? false, await ctx.promise("sign")];
  },
);
