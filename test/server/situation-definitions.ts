// Definitions of the situations: a shop, an agent, thumbnails. `changed`: the code of `invoice` after a careless edit.

import { appendFileSync } from "node:fs";
import {
  append,
  END,
  flow,
  graph,
  last,
  promise,
  query,
  queue,
  signal,
  START,
  stream,
  task,
  typed,
  update,
  workflow,
} from "reprise";
import { z } from "zod";

export const payments = queue("payments", { concurrency: 4 });
export const reserve = task("reserve", (_ctx, order: number) => ({ reserved: order % 7 }));
export const charge = task(
  "charge",
  { queue: payments, retry: { maxAttempts: 3, baseDelay: "50 ms" } },
  (ctx, { order, card }: { order: number; card: string }) => {
    if (card === "declined")
      throw Object.assign(new Error(`the card of order ${order} was declined`), { code: "CARD_DECLINED" });
    if (ctx.attempt < 2) throw new Error("the card network did not answer");
    return { receipt: `ch_${order}`, cents: 4_200 };
  },
);
export const render = task("render", { label: "gpu" }, (_ctx, scene: string) => `${scene}.mp4`);

const approval = z.object({ approved: z.boolean(), reason: z.string().optional() });

/** A worker that gets this variable stops in `pack`, after it has written to the file that the variable names. */
const HOLD = process.env["REPRISE_SITUATION_HOLD"];

async function pack(order: number): Promise<{ parcel: string }> {
  if (HOLD !== undefined) {
    appendFileSync(HOLD, "packing\n");
    await new Promise(() => {});
  }
  return { parcel: `parcel-${order}` };
}

export const checkout = workflow(
  "checkout",
  {
    input: z.object({ order: z.number().int(), card: z.string().default("visa"), review: z.boolean().default(true) }),
    ports: {
      approval: promise<z.infer<typeof approval>>(approval),
      note: signal<string>(),
      address: update<string, string>(),
      progress: query<{ at: string }>(),
      log: stream<string>(),
    },
  },
  async (ctx, { order, card, review }) => {
    let at = "reserving";
    let address = "1 Old Street";
    ctx.onQuery("progress", () => ({ at }));
    ctx.onUpdate("address", (given) => (address = given));
    await ctx.task(reserve, order);
    at = "charging";
    const { receipt, cents } = await ctx.task(charge, { order, card });
    at = "packing";
    ctx.emit("log", `order ${order} is paid`);
    const { parcel } = await ctx.run("pack", () => pack(order));
    at = "waiting for approval";
    const decision = review
      ? await ctx.promise("approval", { show: { order, cents, parcel }, timeout: "2 days" })
      : { approved: true };
    return { receipt, parcel, address, approved: decision?.approved ?? false };
  },
);

export const release = workflow(
  "release",
  { ports: { "sign-off": promise<boolean>(z.boolean()) } },
  async (ctx, version: string) => {
    const parts = ["legal", "security"].map((key) => ctx.promise("sign-off", { key, show: { version, part: key } }));
    return (await Promise.all(parts)).every((part) => part === true);
  },
);

export const research = graph("research", {
  state: { question: last(""), notes: append<string>(), draft: last(""), rounds: last(0) },
})
  .node("search", async (ctx, { question, rounds }) => {
    const found = await ctx.run("fetch", () => [`${question} source ${rounds + 1}`]);
    return { notes: found, rounds: rounds + 1 };
  })
  .node("write", async (_ctx, { notes }) => ({ draft: `draft from ${notes.length} notes` }))
  .node("review", async (ctx, { draft }) => {
    ctx.label("reviewed");
    return { draft: `${draft}, reviewed` };
  })
  .edge(START, "search")
  .edge("search", "search", ({ rounds }) => rounds < 2)
  .edge("search", "write")
  .edge("write", "review")
  .edge("review", END);

export const thumbnails = flow("thumbnails", { input: typed<readonly string[]>() })
  .action("fetch", ["input"], async (_ctx, { input }) => input.length)
  .spread(
    "resized",
    ["input"],
    ({ input }) => input,
    async (_ctx, name) => `${name}@2x`,
  )
  .output(["fetch", "resized"], ({ fetch, resized }) => ({ count: fetch, resized }));

export const video = workflow("video", async (ctx, scene: string) => ctx.task(render, scene));
export const report = workflow("report", async (ctx, to: string) => ctx.run("send", () => `sent to ${to}`));

/** A run of the first form stops when it is continued with the second. */
export function invoice(changed: boolean) {
  return workflow("invoice", { ports: { paid: signal<number>() } }, async (ctx, cents: number) => {
    const first = changed ? "book" : "number";
    const number = await ctx.run(first, () => `inv-${cents}`);
    const paid = await ctx.receive("paid");
    return ctx.run("settle", () => ({ number, paid }));
  });
}

/** Its second call does not fit into its budget, also after a raise by $2. */
export const agent = workflow("agent", { budget: { usd: 2 } }, async (ctx, question: string) => {
  const cost = { reserve: { usd: 0.5, tokens: 4_000 }, actual: () => ({ usd: 0.31, tokens: 2_480 }) };
  await ctx.run("plan", () => `a plan for ${question}`, { cost });
  return ctx.run("answer", () => "because", { cost: { ...cost, reserve: { usd: 5, tokens: 40_000 } } });
});

export const SHOP = [agent, checkout, reserve, charge, release, research, thumbnails, video, render, report] as const;
