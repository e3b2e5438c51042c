// The graphs of the corpus. Never change one: its journal was recorded by it, and must replay against it for ever.
// A new behaviour gets a new graph and a new journal (`REPRISE_RECORD=1 vitest run test/replay/graph-corpus.test.ts`).

import { append, channel, END, goto, graph, last, max, merge, promise, START } from "reprise";

/** Two branches of unequal length, a join, a spread with a failing first attempt, a person, a message, a label, chance. */
export const trip = graph("trip", {
  state: {
    log: append<string>(),
    found: merge<Record<string, number>>({}),
    dearest: max(0),
    total: channel(0n, (sum, cents: number) => sum + BigInt(cents)),
    status: last("open"),
  },
  ports: { approval: promise<{ ok: boolean }>() },
  output: (state) => ({ status: state.status, total: state.total, log: state.log }),
})
  .node("flights", async (ctx) => ({
    found: { flight: await ctx.run("search", { what: "flight" }, () => 300) },
    dearest: 300,
  }))
  .node("hotels", async () => ({ log: ["looking for a hotel"] }))
  .node("rooms", async (ctx) => ({
    found: { room: await ctx.run("search", { what: "room" }, () => 120) },
    dearest: 120,
  }))
  .node("choose", async (ctx, { found }) => {
    ctx.label("chosen");
    return { log: [`chose ${Object.keys(found).join(" and ")} by ${ctx.random().toFixed(6)}`] };
  })
  .node("approve", async (ctx, { found }) => {
    const decision = await ctx.promise("approval", { timeout: "1 day", show: found });
    return decision?.ok === true ? { status: "approved" } : goto(END, { status: "refused" });
  })
  .node(
    "book",
    { retry: { maxAttempts: 3, baseDelay: "1 s" } },
    async (ctx, _state, item: { what: string; cents: number }) => {
      // The corpus was recorded when `ctx.attempt` counted from 0.
      const place = await ctx.run("book", item, (_op, { what }) => `${what} ${ctx.attempt - 1}`);
      if (item.what === "room" && ctx.attempt === 1) throw new Error("the hotel does not answer");
      return { log: [place], total: item.cents };
    },
  )
  .node("tell", async (ctx, { total }) => {
    ctx.send("mail", { total });
    return { status: "booked" };
  })
  .edge(START, ["flights", "hotels"])
  .edge("hotels", "rooms")
  .join(["flights", "rooms"], "choose")
  .edge("choose", "approve")
  .spread("approve", "book", ({ found }) =>
    Object.entries(found).map(([what, price]) => ({ what, cents: price * 100 })),
  )
  .join(["book"], "tell")
  .edge("tell", END);

/** A loop with one node, over a list that grows. */
export const loop = graph("loop", { state: { n: last(0), seen: append<number>() }, fold: "order-key" })
  .node("add", async (_ctx, { n }) => ({ n: n + 1, seen: [n] }))
  .node("beside", async (ctx) => ({ seen: [100 + ctx.step] }))
  .edge(START, ["add", "beside"])
  .edge("beside", END)
  .edge("add", END, ({ n }) => n >= 12)
  .edge("add", ["add", "beside"], ({ n }) => n % 3 === 0)
  .edge("add", "add");
