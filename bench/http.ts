// http: what the server costs: lists, the page of a long run, starts beside those of the engine, the time until a change is seen, and the
// memory of many streams. Over a socket of this machine. `budgetMs` and `budgetMb` are what the design allows.

import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { createClient, createEngine, promise, workflow, type Client } from "reprise";
import { createServer } from "reprise/server";
import { percentile } from "./statistics.ts";
import { scaled, type Measured, type Plan, type Workload } from "./workload.ts";

type Stage = (store: string, plan: Plan) => Promise<Measured>;

const hello = workflow("hello", async (_ctx, name: string) => `Hello, ${name}`);
const long = workflow("long", { ports: { go: promise<string>() } }, async (ctx, steps: number) => {
  for (let n = 0; n < steps; n += 1) await ctx.run("step", () => n);
  return ctx.promise("go");
});
const definitions = [hello, long];
const LIMITS = { requestsPerSecond: 1_000_000, requests: 10_000 };

async function withServer<T>(client: Client<any>, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(client, { limits: LIMITS, dashboard: false });
  const listener = await server.listen({ port: 0 });
  try {
    return await work(listener.url);
  } finally {
    await listener.close();
  }
}

/** How long each call takes. */
async function timed(count: number, call: (n: number) => Promise<unknown>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const startedAt = performance.now();
    await call(n);
    times.push(performance.now() - startedAt);
  }
  return times;
}

async function read(url: string): Promise<string> {
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text.slice(0, 200)}`);
  return text;
}

function measured(latenciesMs: readonly number[], extra: Readonly<Record<string, number>>): Measured {
  const elapsedMs = latenciesMs.reduce((sum, one) => sum + one, 0);
  const p95Ms = percentile(latenciesMs, 0.95) ?? 0;
  return { runs: latenciesMs.length, steps: latenciesMs.length, elapsedMs, latenciesMs, extra: { p95Ms, ...extra } };
}

const CALLS = 300;

/** A page of 50 runs, of 100,000; unfiltered, and of one status. */
async function list(store: string, plan: Plan): Promise<Measured> {
  await using client = await createClient({ store, definitions, logger: false, durability: "relaxed" });
  const count = scaled(100_000, plan);
  for (let from = 0; from < count; from += 1_000)
    await Promise.all(
      Array.from({ length: Math.min(1_000, count - from) }, (_, n) => client.start(hello, `${from + n}`)),
    );
  return await withServer(client, async (url) => {
    const filtered = await timed(CALLS, () => read(`${url}/v1/runs?limit=50&status=queued&definition=hello`));
    const times = await timed(CALLS, () => read(`${url}/v1/runs?limit=50`));
    return measured(times, { filteredP95Ms: percentile(filtered, 0.95) ?? 0, listedRuns: count, budgetMs: 50 });
  });
}

/** What the page of a run reads first: its detail and its timeline, with 10,000 entries. */
async function page(store: string, plan: Plan): Promise<Measured> {
  await using engine = await createEngine({ store, definitions, logger: false, durability: "relaxed" });
  const run = await engine.start(long, scaled(10_000, plan), { id: "long-1" });
  while ((await run.info()).status !== "waiting") await new Promise((resume) => setImmediate(resume));
  const { head } = (await run.info()) as unknown as { readonly head?: number };
  return await withServer(engine, async (url) => {
    const detail = await timed(CALLS, () => read(`${url}/v1/runs/long-1`));
    const timeline = await timed(CALLS, () => read(`${url}/v1/runs/long-1/timeline`));
    const both = detail.map((ms, n) => ms + timeline[n]!);
    return measured(both, {
      detailP95Ms: percentile(detail, 0.95) ?? 0,
      timelineP95Ms: percentile(timeline, 0.95) ?? 0,
      entries: head ?? scaled(10_000, plan),
      budgetMs: 100,
    });
  });
}

/** A start over HTTP beside one of the engine, in turns. */
async function start(store: string, plan: Plan): Promise<Measured> {
  await using client = await createClient({ store, definitions, logger: false });
  const count = scaled(CALLS, plan);
  return await withServer(client, async (url) => {
    const inProcess: number[] = [];
    const overHttp: number[] = [];
    for (let n = 0; n < count; n += 1) {
      inProcess.push(...(await timed(1, () => client.start(hello, "Ada"))));
      const body = JSON.stringify({ input: "Ada" });
      const headers = { "content-type": "application/json", "x-reprise": "1" };
      overHttp.push(
        ...(await timed(1, async () => {
          const response = await fetch(`${url}/v1/definitions/hello/runs`, { method: "POST", headers, body });
          if (response.status !== 201) throw new Error(await response.text());
          await response.text();
        })),
      );
    }
    const over = (share: number): number => (percentile(overHttp, share) ?? 0) - (percentile(inProcess, share) ?? 0);
    return measured(overHttp, { overEngineP50Ms: over(0.5), overEngineP95Ms: over(0.95), budgetMs: 10 });
  });
}

async function openStream(url: string): Promise<IncomingMessage> {
  const request = get(url, { headers: { accept: "text/event-stream" } });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`);
  return response;
}

/** From the commit of a start to its event at a client. */
async function sse(store: string, plan: Plan): Promise<Measured> {
  await using client = await createClient({ store, definitions, logger: false });
  return await withServer(client, async (url) => {
    const stream = await openStream(`${url}/v1/events`);
    const waiting = new Map<string, () => void>();
    let text = "";
    stream.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString()).slice(-20_000);
      for (const [id, seen] of waiting) if (text.includes(id)) seen();
    });
    const times: number[] = [];
    for (let n = 0; n < scaled(CALLS, plan); n += 1) {
      const id = `seen-${plan.scale}-${n}.`;
      const { promise: seen, resolve } = Promise.withResolvers<void>();
      waiting.set(id, resolve);
      await client.start(hello, "Ada", { id });
      const committedAt = performance.now();
      await seen;
      times.push(performance.now() - committedAt);
      waiting.delete(id);
    }
    stream.destroy();
    return measured(times, { budgetMs: 50 });
  });
}

/** The memory of 500 streams, with those of their clients: both are in this process. */
async function clients(store: string, plan: Plan): Promise<Measured> {
  await using client = await createClient({ store, definitions, logger: false });
  return await withServer(client, async (url) => {
    (await openStream(`${url}/v1/events`)).destroy();
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    const startedAt = performance.now();
    // One more would be refused.
    const streams = await Promise.all(Array.from({ length: scaled(499, plan) }, () => openStream(`${url}/v1/events`)));
    const openMs = performance.now() - startedAt;
    for (const stream of streams) stream.resume();
    await timed(20, (n) => client.start(hello, `${n}`));
    const memoryMb = (process.memoryUsage().rss - before) / 1_048_576;
    for (const stream of streams) stream.destroy();
    return measured([openMs / streams.length], { streams: streams.length, memoryMb, budgetMb: 150 });
  });
}

const STAGES: Readonly<Record<string, Stage>> = { list, page, start, sse, clients };

let opened = 0;

export const httpWorkload: Workload = {
  name: "http",
  variants: Object.keys(STAGES),
  warmUp: 0.05,
  hasNoRate: true,
  withoutWorker: true,
  run(rig, plan) {
    const stage = STAGES[plan.variant];
    if (stage === undefined) throw new Error(`Expected one of ${Object.keys(STAGES).join(", ")}.`);
    return stage(`sqlite:${join(rig.database.folder, `http-${(opened += 1)}.db`)}`, plan);
  },
};
