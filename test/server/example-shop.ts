// Example shop: a store in which the example of every operation is true, and a server in front of it.

import {
  createEngine,
  END,
  graph,
  last,
  promise,
  query,
  queue,
  signal,
  START,
  stream,
  task,
  update,
  workflow,
  type Engine,
} from "reprise";
import { until } from "../engine/world.ts";
import { createServer, LogRing, type Server, type ServerOptions } from "reprise/server";

const payments = queue("payments", { concurrency: 4 });
const charge = task("charge", { queue: payments }, (_ctx, order: number) => `charged ${order}`);

const checkout = workflow(
  "checkout",
  {
    ports: {
      approval: promise<unknown>(),
      note: signal<unknown>(),
      address: update<unknown, unknown>(),
      progress: query<unknown>(),
      words: stream<string>(),
    },
  },
  async (ctx, input: { readonly order: number; readonly fails?: boolean; readonly done?: boolean } | null) => {
    let address: unknown = "1 Old Street";
    ctx.onQuery("progress", () => ({ address }));
    ctx.onUpdate("address", (to) => {
      address = to;
      return { address };
    });
    ctx.log.info("charging");
    ctx.emit("words", "charging");
    await ctx.task(charge, input?.order ?? 0);
    if (input?.fails === true) throw new TypeError("the card was declined");
    if (input?.done === true) return { address };
    return { answer: await ctx.promise("approval", { show: { order: input?.order ?? 0 } }) };
  },
);

const release = workflow("release", { ports: { "sign-off": promise<unknown>() } }, async (ctx) =>
  ctx.promise("sign-off", { key: "legal" }),
);

const answer = graph("answer", { state: { draft: last("") } })
  .node("write", async (_ctx, state) => ({ draft: `${state.draft}!` }))
  .edge(START, "write")
  .edge("write", END, ({ draft }) => draft.length > 3)
  .edge("write", "write");

/** Its second call does not fit into its budget, also after a raise by $2. */
const agent = workflow("agent", { budget: { usd: 2 } }, async (ctx) => {
  const cost = { reserve: { usd: 0.5 }, actual: () => ({ usd: 0.25 }) };
  await ctx.run("model", () => "a plan", { cost });
  return ctx.run("model", () => "an answer", { cost: { ...cost, reserve: { usd: 5 } } });
});

const report = workflow("report", async (ctx) => ctx.run("print", () => "printed"));

export interface ExampleShop extends AsyncDisposable {
  readonly engine: Engine;
  readonly server: Server;
}

/** Opens the shop. Its runs have come to rest when it returns. */
export async function openExampleShop(options: ServerOptions = {}, store = "sqlite::memory:"): Promise<ExampleShop> {
  const logs = new LogRing();
  const logger = logs.logger({ info: () => undefined, warn: () => undefined, error: () => undefined });
  const definitions = [checkout, release, agent, answer, report, charge];
  const engine = await createEngine({ store, definitions, logger });
  const waiting = await Promise.all([
    ...["order-1042", "order-1039", "order-1038", "video-5"].map((id) =>
      engine.start(checkout, { order: Number(id.replace(/^\D+/, "")) }, { id, tags: ["shop"] }),
    ),
    engine.start(release, undefined, { id: "release-3" }),
    engine.start(agent, undefined, { id: "agent-7" }),
  ]);
  const ended = await Promise.all([
    engine.start(checkout, { order: 1041, done: true }, { id: "order-1041" }),
    engine.start(checkout, { order: 1037, done: true }, { id: "order-1037" }),
    engine.start(checkout, { order: 1040, fails: true }, { id: "order-1040" }),
    engine.start(answer, { draft: "a" }, { id: "answer-7" }),
  ]);
  await Promise.all(ended.map((run) => run.result().catch(() => undefined)));
  const fork = await engine.get(answer, "answer-7").fork({ step: 1, id: "answer-7-fork", patch: { draft: "other" } });
  await fork.result();
  await engine.evaluate(answer, { runs: ["answer-7"], id: "nightly" });
  for (const name of ["nightly-report", "old-report"])
    await engine.schedule(name, report, undefined, { cron: "0 3 * * *" });
  for (const run of waiting) await until(async () => (await run.info()).status === "waiting");
  const server = createServer(engine as unknown as Engine, {
    limits: { requestsPerSecond: 100_000 },
    logs,
    ...options,
  });
  return {
    engine: engine as unknown as Engine,
    server,
    async [Symbol.asyncDispose]() {
      await server.close();
      await engine.close();
    },
  };
}
