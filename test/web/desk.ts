// Definitions and the site of the tests of approvals, graphs, queues, schedules and proof: an engine and its server in this process.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  append,
  createEngine,
  END,
  flow,
  graph,
  last,
  promise,
  queue,
  START,
  stream,
  task,
  typed,
  workflow,
} from "reprise";
import type { Client, Engine } from "reprise";
import { createServer, LogRing, type ServerOptions } from "reprise/server";
import { z } from "zod";

/** Answered by true or false. */
export const newsletter = workflow(
  "newsletter",
  { ports: { confirm: promise(z.boolean()) } },
  async (ctx, readers: number) => {
    const answer = await ctx.promise("confirm", {
      timeout: "2 hours",
      show: { title: `Send the newsletter to ${readers} readers`, why: "A person confirms every mailing.", readers },
    });
    return answer === true ? "sent" : "kept";
  },
);

/** Answered by `ok`; the person may change the amount. */
export const refund = workflow(
  "refund",
  {
    ports: {
      approval: promise(
        z.object({ ok: z.boolean(), cents: z.int().max(10_000).optional(), reason: z.string().optional() }),
      ),
    },
  },
  async (ctx, order: { readonly id: string; readonly cents: number }) => {
    const answer = await ctx.promise("approval", {
      key: "desk",
      timeout: "3 hours",
      show: { title: `Refund ${order.cents} cents for order ${order.id}`, order: order.id, cents: order.cents },
    });
    return { refunded: answer?.ok === true ? (answer.cents ?? order.cents) : 0, why: answer?.reason ?? "" };
  },
);

/** Its second call does not fit into its budget. */
export const spender = workflow("spender", { budget: { usd: 2, calls: 9 } }, async (ctx) => {
  const cost = { reserve: { usd: 0.5, calls: 1 }, actual: () => ({ usd: 0.25, calls: 1 }) };
  await ctx.run("plan", () => "a plan", { cost });
  return ctx.run("answer", () => "an answer", { cost: { ...cost, reserve: { usd: 5 } } });
});

/** Has no schema: a person writes the value. */
export const crawlSkip = workflow("crawl-skip", { ports: { skip: promise<{ pages: number }>() } }, async (ctx) => {
  try {
    return await ctx.promise("skip", { show: ["first page", "second page"] });
  } catch (error) {
    return (error as Error).message;
  }
});

interface Message {
  readonly role: string;
  readonly text: string;
}

const WORDS = ["I am sorry ", "that the parcel ", "arrived damaged. "];

/** An agent: thinks, searches twice at once, thinks again, waits for a person, replies. */
export const support = graph("support", {
  state: {
    messages: append<Message>(),
    articles: append<string>(),
    order: last<{ readonly id: string; readonly cents: number } | null>(null),
    intent: last(""),
  },
  ports: { words: stream<string>(), approve: promise(z.object({ ok: z.boolean() })) },
  output: (state) => state.messages.length,
})
  .node("triage", async () => ({ intent: "refund" }))
  .node("think", async (ctx, { articles }) => {
    const text = await ctx.run("llm", async (op) => {
      for (const word of WORDS) op.emit("words", word);
      return articles.length === 0 ? "search" : "refund";
    });
    return { messages: [{ role: "model", text }] };
  })
  .node("search", async (_ctx, _state, topic: string) => ({ articles: [`about ${topic}`] }))
  .node("ask", async (ctx) => {
    const answer = await ctx.promise("approve", { timeout: "1 day", show: { title: "Refund 84.00 EUR" } });
    return { order: answer?.ok === true ? { id: "o-1", cents: 8400 } : null };
  })
  .node("reply", async () => ({ messages: [{ role: "model", text: "done" }] }))
  .edge(START, "triage")
  .edge("triage", "think")
  .edge("think", "ask", ({ articles }) => articles.length > 0)
  .spread("think", "search", () => ["refunds", "parcels"])
  .edge("search", "think")
  .edge("ask", "reply")
  .edge("reply", END);

/** A fan-out whose items wait for nothing; one of them fails. */
export const crawl = flow("crawl", { input: typed<{ readonly pages: number }>() })
  .action("list", ["input"], async (_ctx, { input }) => Array.from({ length: input.pages }, (_, page) => page))
  .spread(
    "fetched",
    ["list"],
    { settle: true },
    ({ list }) => list,
    async (_ctx, page) => {
      if (page === 3) throw new Error("403");
      return page * 2;
    },
  )
  .output(["fetched"], ({ fetched }) => fetched.length);

/** No worker of the tests has the label. */
export const draw = task("draw", { label: "gpu" }, () => "drawn");
export const render = workflow("render", async (ctx) => ctx.task(draw));

/** At most one at once; each waits until a person releases it. */
export const payments = queue("payments", { concurrency: 1, perKey: { concurrency: 1 } });
export const pay = workflow(
  "pay",
  { queue: payments, key: () => "customer-1", ports: { done: promise<boolean>() } },
  async (ctx, order: string) => {
    await ctx.promise("done");
    return order;
  },
);

export const report = workflow("report", async (ctx, to: string) =>
  ctx.run("send", (op) => {
    op.log.warn("the printer is slow", { pages: 3 });
    if (to === "everyone") for (let page = 1; page <= 600; page += 1) op.log.info(`page ${page}`);
    return `sent to ${to}`;
  }),
);

/** The code of a run, and the code after a change that does not fit its journal. */
export const checkout = workflow("checkout", async (ctx, order: string) => {
  await ctx.run("reserve", () => order);
  await ctx.run("charge", () => 7);
  await ctx.sleep("1 hour");
  return order;
});
export const changedCheckout = workflow("checkout", async (ctx, order: string) => {
  await ctx.run("reserve", () => order);
  await ctx.run("notify", () => "early");
  await ctx.sleep("1 hour");
  return order;
});

export const desk = [
  newsletter,
  refund,
  crawlSkip,
  support,
  crawl,
  render,
  draw,
  pay,
  report,
  checkout,
  spender,
] as const;

export interface Desk extends AsyncDisposable {
  readonly url: string;
  readonly engine: Engine;
  readonly store: string;
}

/** One store, one engine with a worker, one server. */
export async function openDesk(options: ServerOptions = {}, definitions: readonly any[] = desk): Promise<Desk> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-desk-"));
  const store = `sqlite:${join(folder, "desk.db")}`;
  const logs = new LogRing();
  const logger = logs.logger({ info: () => {}, warn: () => {}, error: () => {} });
  const engine = (await createEngine({ store, definitions, logger })) as unknown as Engine;
  const server = createServer(engine as unknown as Client, { logs, logger, ...options });
  const listener = await server.listen({ port: 0 });
  return {
    url: listener.url,
    engine,
    store,
    [Symbol.asyncDispose]: async () => {
      await listener.close();
      await server.close();
      await engine.close({ grace: "0 s" });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
