import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createEngine, flow, promise, queue, task, typed, workflow } from "reprise";
import { createMetrics, createServer } from "reprise/server";
import { sqlite } from "reprise/sqlite";
import { Counter } from "../../src/server/metrics/metric-family.ts";
import { ask, ROLE_TOKENS, tokenFor } from "./auth-fixture.ts";
import { parseOpenMetrics, type Family } from "./openmetrics.ts";

const mail = queue("mail", { concurrency: 1 });
const send = task("send", { queue: mail, retry: { maxAttempts: 2, baseDelay: 1 } }, (ctx) => {
  if (ctx.attempt === 1) throw new Error("busy");
  return 1;
});
const order = workflow("order", async (ctx) => {
  await ctx.run("prepare", () => 1);
  await ctx.task(send);
  await ctx.send("shop", 1);
});
const asked = workflow("asked", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
const broken = workflow("broken", async () => {
  throw new Error("no");
});
const total = flow("total", { input: typed<number>() })
  .action("double", ["input"], async (_ctx, { input }) => input * 2)
  .output(["double"], ({ double }) => double);

function open() {
  return createEngine({
    store: "sqlite::memory:",
    definitions: [order, asked, broken, total, send],
    outbox: { shop: () => {} },
    logger: false,
  });
}

/** The value of a sample with exactly these labels. */
function valueOf(families: ReadonlyMap<string, Family>, name: string, labels: Readonly<Record<string, string>> = {}) {
  const all = [...families.values()].flatMap(({ samples }) => samples);
  const text = (one: object): string => JSON.stringify(Object.entries(one).toSorted());
  return all.find((one) => one.name === name && text(one.labels) === text(labels))?.value;
}

async function readDashboard(): Promise<string> {
  return readFile(new URL("../../deploy/grafana/reprise.json", import.meta.url), "utf8");
}

test("the page of metrics is OpenMetrics, counts what the process did and reads what the store holds", async () => {
  await using engine = await open();
  await using server = createServer(engine, { auth: { tokens: ROLE_TOKENS } });
  await (await engine.start(order)).result();
  await (await engine.start(total, 2)).result();
  await expect((await engine.start(broken)).result()).rejects.toThrow("no");
  await engine.start(asked, undefined, { id: "asked-1" });
  await engine.schedule("nightly", asked, undefined, { cron: "0 3 * * *" });
  await ask(server, "/v1/site", { token: tokenFor("viewer") });
  await ask(server, "/v1/site");
  const response = await ask(server, "/metrics", {
    token: tokenFor("viewer"),
    headers: { accept: "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1" },
  });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  const text = await response.text();
  const families = parseOpenMetrics(text);
  const has = (name: string, labels?: Readonly<Record<string, string>>) => valueOf(families, name, labels);
  expect(has("reprise_runs_started_total", { definition: "order" })).toBe(1);
  expect(has("reprise_runs_started_total", { definition: "total" })).toBe(1);
  expect(has("reprise_runs_ended_total", { definition: "order", status: "completed" })).toBe(1);
  expect(has("reprise_runs_ended_total", { definition: "total", status: "completed" })).toBe(1);
  expect(has("reprise_runs_ended_total", { definition: "broken", status: "failed" })).toBe(1);
  expect(has("reprise_run_duration_seconds_count", { definition: "order" })).toBe(1);
  const step = { definition: "order", name: "prepare", kind: "operation" };
  expect(has("reprise_step_duration_seconds_count", step)).toBe(1);
  expect(has("reprise_step_duration_seconds_count", { definition: "total", name: "double", kind: "node" })).toBe(1);
  const attempts = { definition: "order", name: "send" };
  expect(has("reprise_attempts_total", { ...attempts, outcome: "failed" })).toBe(1);
  expect(has("reprise_attempts_total", { ...attempts, outcome: "completed" })).toBe(1);
  expect(has("reprise_commits_total")).toBeGreaterThan(3);
  expect(has("reprise_leases_lost_total")).toBe(0);
  expect(has("reprise_queue_ready", { queue: "mail" })).toBe(0);
  expect(has("reprise_queue_oldest_seconds", { queue: "default" })).toBe(0);
  expect(has("reprise_promises_open", { definition: "asked", port: "go" })).toBe(1);
  expect(has("reprise_runs", { definition: "asked", status: "waiting" })).toBe(1);
  expect(has("reprise_schedule_lag_seconds")).toBe(0);
  expect(has("reprise_workers")).toBe(1);
  expect(has("reprise_worker_slots", { state: "free" })).toBeGreaterThan(0);
  const request = { route: "/v1/site", method: "GET" };
  expect(has("reprise_http_request_duration_seconds_count", { ...request, status: "200" })).toBe(1);
  expect(has("reprise_http_request_duration_seconds_count", { ...request, status: "401" })).toBe(1);
  expect(text).not.toContain("asked-1");
  // Every metric and label of the dashboard is on the page.
  const samples = [...families.values()].flatMap((family) => family.samples);
  const dashboard = await readDashboard();
  const used = [...dashboard.matchAll(/\b(reprise_\w+)(?:\{([^}]*)\})?/g)];
  expect(used.length).toBeGreaterThan(15);
  for (const [, name = "", selector = ""] of used) {
    if (name === "reprise_outbox_pending" || name === "reprise_messages_total") continue;
    const sample = samples.find((one) => one.name === name);
    expect(sample, name).toBeDefined();
    for (const [, label = ""] of selector.matchAll(/(\w+)=~?/g)) expect(Object.keys(sample!.labels)).toContain(label);
  }
  for (const [, labels = ""] of dashboard.matchAll(/by \(([\w, ]+)\)/g))
    for (const label of labels.split(", "))
      expect(
        samples.some((one) => label in one.labels || label === "destination"),
        label,
      ).toBe(true);
});

test("every call that does not fit into its budget is counted, whether it waits or fails", async () => {
  const cost = { reserve: { calls: 1 }, actual: () => ({ calls: 1 }) };
  const crawl = workflow("crawl", async (ctx) => {
    for (const page of ["a", "b"]) await ctx.run("fetch", () => page, { cost });
  });
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [crawl], logger: false });
  const metrics = createMetrics(engine);
  const reached = async () =>
    valueOf(parseOpenMetrics(await metrics.text()), "reprise_budget_reached_total", { definition: "crawl" });
  await (await engine.start(crawl, undefined, { budget: { calls: 2 } })).result();
  expect(await reached()).toBeUndefined();
  const failing = await engine.start(crawl, undefined, { budget: { calls: 1, onReached: "fail" } });
  await expect(failing.result()).rejects.toMatchObject({ cause: { code: "BUDGET_REACHED" } });
  expect(await reached()).toBe(1);
  const waiting = await engine.start(crawl, undefined, { budget: { calls: 1 } });
  await expect.poll(reached).toBe(2);
  await waiting.raise({ calls: 1 });
  await waiting.result();
  expect(await reached()).toBe(2);
  metrics.close();
});

test("without a server, createMetrics counts until it is closed", async () => {
  await using engine = await open();
  const metrics = createMetrics(engine);
  await (await engine.start(total, 1)).result();
  const completed = { definition: "total", status: "completed" };
  expect(valueOf(parseOpenMetrics(await metrics.text()), "reprise_runs_ended_total", completed)).toBe(1);
  metrics.close();
  await (await engine.start(total, 1)).result();
  expect(valueOf(parseOpenMetrics(await metrics.text()), "reprise_runs_ended_total", completed)).toBe(1);
});

test("a family has a limited number of label sets, and the others are counted together", () => {
  const counter = new Counter({ name: "c", help: 'h\n"\\', labels: ["name"], limit: 2 });
  for (const name of ["a", 'b"\\\n', "c", "d"]) counter.add([name]);
  const families = parseOpenMetrics(`${counter.text()}\n# EOF\n`);
  expect(families.get("c")?.samples).toEqual([
    { name: "c_total", labels: { name: "a" }, value: 1 },
    { name: "c_total", labels: { name: 'b"\\\n' }, value: 1 },
    { name: "c_total", labels: { name: "other" }, value: 2 },
  ]);
});

test("/health answers without a token, /ready no longer when the engine drains", async () => {
  await using engine = await open();
  await using server = createServer(engine, { auth: { tokens: ROLE_TOKENS } });
  expect(await (await ask(server, "/health")).json()).toEqual({ status: "alive" });
  expect(await (await ask(server, "/ready")).json()).toEqual({ status: "ready" });
  expect((await ask(server, "/metrics")).status).toBe(401);
  expect((await ask(server, "/scale")).status).toBe(401);
  await engine.drain();
  const response = await ask(server, "/ready");
  expect(response.status).toBe(503);
  expect(response.headers.get("retry-after")).toBe("1");
  expect(await response.json()).toMatchObject({ status: 503, detail: "The process is draining or closing." });
  expect((await ask(server, "/health")).status).toBe(200);
});

test("/scale says how much work a queue has and how many workers it needs", async () => {
  await using engine = await open();
  await using server = createServer(engine, { auth: { tokens: ROLE_TOKENS } });
  const read = async (path: string): Promise<{ ready?: number }> =>
    (await ask(server, path, { token: tokenFor("viewer") })).json() as Promise<{ ready?: number }>;
  expect(await read("/scale?queue=mail&per=10")).toMatchObject({ queue: "mail", ready: 0, running: 0, desired: 0 });
  await engine.getQueue("mail").pause();
  for (let count = 0; count < 25; count += 1) await engine.start(order);
  await expect.poll(async () => (await read("/scale?queue=mail&per=10")).ready).toBe(25);
  expect(await read("/scale?queue=mail&per=10")).toMatchObject({ paused: true, desired: 0, workers: 1, slots: 256 });
  expect(await read("/scale?queue=none")).toMatchObject({ code: "QUEUE_NOT_FOUND" });
  expect(await read("/scale?per=0")).toMatchObject({ code: "BAD_FORMAT" });
});

test("transactions of ctx.tx count as attempts, with their time", async () => {
  const ledger = workflow("ledger", async (ctx) => {
    await ctx.tx("create", sqlite, (db) => db.exec("create table bookings (amount integer)"));
    await ctx.tx("refuse", sqlite, () => {
      throw new Error("no");
    });
  });
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [ledger], logger: false });
  await using server = createServer(engine);
  await expect((await engine.start(ledger)).result()).rejects.toThrow("no");
  const families = parseOpenMetrics(await (await ask(server, "/metrics")).text());
  for (const [name, outcome] of [
    ["create", "completed"],
    ["refuse", "failed"],
  ] as const) {
    expect(valueOf(families, "reprise_attempts_total", { definition: "ledger", name, outcome })).toBe(1);
    const step = { definition: "ledger", name, kind: "operation" };
    expect(valueOf(families, "reprise_step_duration_seconds_count", step)).toBe(1);
  }
});
