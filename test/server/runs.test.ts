// Runs over HTTP: every kind of definition, roles and scopes, in one process.

import {
  append,
  createEngine,
  END,
  flow,
  graph,
  last,
  promise,
  signal,
  START,
  task,
  typed,
  workflow,
  type Engine,
} from "reprise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openApi, type Api } from "./api.ts";

const SECRET = "4111-1111";

const charge = task("charge", { retry: { maxAttempts: 3, baseDelay: 1 } }, (ctx, cents: number) => {
  if (ctx.attempt < 3) throw new Error(`no answer for ${SECRET}`);
  return { cents };
});
const parcel = workflow("parcel", async (ctx, to: string) => ctx.run("label", () => `to ${to}`));
const order = workflow(
  "order",
  { ports: { approval: promise<boolean>(), note: signal<string>() } },
  async (ctx, input: { card: string; cents: number }) => {
    const paid = await ctx.task(charge, input.cents);
    const label = await ctx.child(parcel, "ann", { id: "order-1-parcel" });
    await ctx.sleep(1);
    const note = await ctx.receive("note");
    const approved = await ctx.promise("approval", { show: { card: input.card } });
    return { paid, label, note, approved, card: input.card };
  },
);
const agent = graph("agent", { state: { n: last(0), log: append<string>() } })
  .node("work", async (_ctx, { n }) => ({ n: n + 1, log: [`step ${n}`] }))
  .edge(START, "work")
  .edge("work", END, ({ n }) => n >= 3)
  .edge("work", "work");
const many = flow("many", { input: typed<number>() })
  .spread(
    "item",
    ["input"],
    ({ input }) => Array.from({ length: input }, (_, index) => index),
    async (_ctx, index) => index,
  )
  .output(["item"], ({ item }) => item.length);
const fails = workflow("fails", async () => {
  throw Object.assign(new Error(`bad card ${SECRET}`), { code: "BAD_CARD" });
});
const decline = task("decline", { retry: { maxAttempts: 3, baseDelay: 1 } }, () => {
  throw Object.assign(new Error("card declined"), { name: "CardError" });
});
const declined = workflow("declined", async (ctx) => ctx.task(decline, undefined));

const crawl = workflow("crawl", { budget: { calls: 1 } }, async (ctx) => {
  const cost = { reserve: { calls: 1 }, actual: () => ({ calls: 1 }) };
  for (const page of ["a", "b"]) await ctx.run("fetch", () => page, { cost });
});

let engine: Engine<any>;
let api: Api;

beforeAll(async () => {
  engine = await createEngine({
    store: "sqlite::memory:",
    definitions: [order, charge, parcel, agent, many, fails, declined, decline, crawl],
    logger: false,
  });
  api = openApi(engine);
  await engine.start(order, { card: SECRET, cents: 42 }, { id: "order-1", tags: ["eu"] });
  await engine.start(agent, {}, { id: "agent-1", tags: ["eu"] });
  await engine.start(fails, undefined, { id: "fails-1", tags: ["us"] });
  await engine.get(agent, "agent-1").result();
  await engine
    .get(fails, "fails-1")
    .result()
    .catch(() => {});
  await engine.get(order, "order-1").signal("note", "hello");
  await untilOpen("order-1");
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await engine.close();
});

/** The run waits for its promise: the engine of this process commits it. */
async function untilOpen(id: string): Promise<void> {
  for (;;) {
    for await (const open of engine.promises()) if (open.runId === id) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const idsOf = (body: { items: { id: string }[] }): string[] => body.items.map(({ id }) => id);

test("a list is newest first, filtered and paged", async () => {
  const { body } = await api.get("/v1/runs?limit=2");
  expect(body.items).toHaveLength(2);
  const rest = await api.get(`/v1/runs?limit=500&after=${body.next}`);
  const all = await api.get("/v1/runs");
  expect([...idsOf(body), ...idsOf(rest.body)]).toEqual(idsOf(all.body));
  expect(rest.body.next).toBeUndefined();
  expect(idsOf((await api.get("/v1/runs?status=failed&status=waiting&tag=us")).body)).toEqual(["fails-1"]);
  expect(idsOf((await api.get("/v1/runs?errorCode=BAD_CARD")).body)).toEqual(["fails-1"]);
  expect(idsOf((await api.get("/v1/runs?q=gent-")).body)).toEqual(["agent-1"]);
  expect(idsOf((await api.get("/v1/runs?kind=graph")).body)).toEqual(["agent-1"]);
  expect(idsOf((await api.get("/v1/runs/order-1/children")).body)).toEqual(["order-1-parcel"]);
  expect(idsOf((await api.get("/v1/runs?from=2001-01-01T00:00:00Z&to=2002-01-01T00:00:00Z")).body)).toEqual([]);
  expect((await api.get("/v1/runs?from=yesterday")).status).toBe(400);
});

test("the detail of a run has its input, what it waits for and its open promises", async () => {
  const { body, headers } = await api.get("/v1/runs/order-1");
  expect(body).toMatchObject({
    status: "waiting",
    input: { card: SECRET, cents: 42 },
    children: 1,
    attempts: { failed: 2, lost: 0 },
    openPromises: [{ name: "approval", show: { card: SECRET } }],
    registered: true,
  });
  expect(body.waitsFor[0]).toMatchObject({ reason: "promise", next: [expect.stringContaining("reprise resolve")] });
  // It has waited longer by now, so only the tag is compared.
  expect(headers.get("etag")).toMatch(/^"/);
});

test("a timeline tells waiting from work, in every kind of run", async () => {
  const kinds = ({ spans }: { spans: { kind: string }[] }): string[] => spans.map(({ kind }) => kind);
  const { body } = await api.get("/v1/runs/order-1/timeline");
  const row = (name: string): any => body.rows.find((one: { name: string }) => one.name === name);
  expect(kinds(row("charge")).filter((kind) => kind !== "queue" && kind !== "backoff")).toEqual([
    "failed",
    "failed",
    "work",
  ]);
  expect(row("charge")).toMatchObject({ kind: "task", state: "completed", attempts: 3 });
  expect(row("charge").spans.find((span: { kind: string }) => span.kind === "failed").error.frames[0]).toContain(
    "runs.test.ts",
  );
  expect(row("parcel")).toMatchObject({ kind: "child", child: "order-1-parcel", state: "completed" });
  expect(row("sleep")).toMatchObject({ kind: "sleep", state: "completed" });
  expect(row("note")).toMatchObject({ kind: "signal", state: "completed" });
  expect(row("approval")).toMatchObject({ kind: "promise", state: "open" });
  const graphRun = await api.get("/v1/runs/agent-1/timeline");
  expect(graphRun.body.rows.map((one: { step: number }) => one.step)).toEqual([1, 2, 3]);
});

test("a spread of 10,000 items is one row with its progress", async () => {
  const run = await engine.start(many, 10_000, { id: "many-1" });
  expect(await run.result()).toBe(10_000);
  expect((await run.info()).entries).toBeGreaterThan(10_000);
  const { body } = await api.get("/v1/runs/many-1/timeline");
  const spread = body.rows.find((row: { kind: string }) => row.kind === "spread");
  expect(spread).toMatchObject({
    state: "completed",
    progress: { done: 10_000, total: 10_000, failed: 0, running: 0 },
  });
  expect(body.rows.length).toBeLessThan(5);
}, 60_000);

test("a journal is paged in both directions, with the sentence of each entry", async () => {
  const first = await api.get("/v1/runs/order-1/journal?limit=3");
  expect(first.body.items.map((entry: { seq: number }) => entry.seq)).toEqual([1, 2, 3]);
  const next = await api.get(`/v1/runs/order-1/journal?limit=500&after=${first.body.next}`);
  expect(next.body.items[0].seq).toBe(4);
  const newest = await api.get("/v1/runs/order-1/journal?limit=2&order=last");
  expect(newest.body.items.map((entry: { seq: number }) => entry.seq)).toEqual(
    next.body.items
      .map((entry: { seq: number }) => entry.seq)
      .toReversed()
      .slice(0, 2),
  );
  // The name of the task is in the entry that requested it, on the page before.
  expect(next.body.items.map((entry: { line: { name: string } }) => entry.line.name)).toContain("parcel");
  const text = await api.get("/v1/runs/order-1/journal.jsonl");
  const lines = String(text.body).trim().split("\n");
  expect(JSON.parse(lines[0]!)).toMatchObject({ run: { id: "order-1" } });
  expect(lines).toHaveLength(1 + first.body.items.length + next.body.items.length);
});

test("a viewer sees no payload, and learns which fields are hidden", async () => {
  const viewer = api.as({ name: "v", role: "viewer" });
  for (const path of [
    "/v1/runs",
    "/v1/runs/order-1",
    "/v1/runs/order-1/journal?limit=500",
    "/v1/runs/order-1/timeline",
    "/v1/runs/order-1/attempts",
    "/v1/runs/fails-1",
    "/v1/runs/fails-1/journal",
    "/v1/reasons?run=order-1&run=fails-1",
    "/v1/promises",
    "/v1/promises/history",
    "/v1/runs/agent-1/checkpoints",
  ]) {
    const { status, body } = await viewer.get(path);
    expect([path, status]).toEqual([path, 200]);
    expect(JSON.stringify(body), path).not.toContain(SECRET);
  }
  expect((await viewer.get("/v1/runs/order-1")).body.hidden).toEqual(["input"]);
  expect((await viewer.get("/v1/runs/fails-1")).body).toMatchObject({ hidden: ["error"], errorCode: "BAD_CARD" });
  const { body } = await viewer.get("/v1/runs/order-1/journal?limit=500");
  const charged = body.items.find((entry: { type: string }) => entry.type === "TaskCompleted");
  expect(charged).toMatchObject({
    hidden: ["data"],
    line: { name: "charge", text: expect.stringContaining("(hidden)") },
  });
  expect((await viewer.get("/v1/runs/order-1/result")).status).toBe(403);
  expect((await viewer.get("/v1/runs/agent-1/state")).status).toBe(403);
});

test("a caller with scopes sees only runs of them: others do not exist", async () => {
  const eu = api.as({ name: "eu", tags: ["eu"] });
  expect(idsOf((await eu.get("/v1/runs")).body)).toEqual(["agent-1", "order-1"]);
  expect((await eu.get("/v1/runs/fails-1")).status).toBe(404);
  expect((await eu.post("/v1/runs/fails-1/retry")).status).toBe(404);
  expect((await eu.get("/v1/reasons?run=fails-1&run=order-1")).body.items).toHaveLength(1);
  expect((await eu.get("/v1/counts")).body.counts).toMatchObject({ failed: 0, completed: 1, waiting: 1 });
  expect((await eu.get("/v1/promises")).body.items).toHaveLength(1);
  const agents = api.as({ name: "agents", definitions: ["agent"] });
  expect(idsOf((await agents.get("/v1/runs")).body)).toEqual(["agent-1"]);
  expect((await agents.get("/v1/definitions")).body.items.map(({ name }: { name: string }) => name)).toEqual(["agent"]);
  expect((await agents.get("/v1/promises")).body.items).toEqual([]);
  expect((await agents.get("/v1/stats")).body.items).toHaveLength(1);
  const dry = await agents.post("/v1/runs/bulk", { action: "cancel", filter: {}, dryRun: true });
  expect(dry.body).toEqual({ count: 0, skipped: 1, more: false, dryRun: true });
});

test("a result is 200 with the output, 202 while the run lives, and a problem if it failed", async () => {
  expect((await api.get("/v1/runs/agent-1/result")).body.output).toMatchObject({ n: 3 });
  expect(await api.get("/v1/runs/order-1/result?wait=0")).toMatchObject({ status: 202, body: { status: "waiting" } });
  expect(await api.get("/v1/runs/fails-1/result")).toMatchObject({ status: 422, body: { code: "RUN_FAILED" } });
});

test("the trace of a caller is carried into the run, and one that is no trace is ignored", async () => {
  const traceOf = async (id: string, headers: Record<string, string>): Promise<unknown> => {
    await api.post("/v1/definitions/parcel/runs", { input: "ann", id }, headers);
    const { body } = await api.get(`/v1/runs/${id}/journal?limit=1`);
    return body.items[0].data.trace;
  };
  const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  expect(await traceOf("traced-1", { traceparent: parent, tracestate: "a=b" })).toEqual({ parent, state: "a=b" });
  for (const [index, wrong] of [
    "x",
    `ff${parent.slice(2)}`,
    parent.replace("b7ad6b7169203331", "0".repeat(16)),
  ].entries())
    expect(await traceOf(`traced-${index + 2}`, { traceparent: wrong })).toBeUndefined();
});

test("a run that could not be addressed is not started", async () => {
  for (const id of [".", ".."])
    expect(await api.post("/v1/definitions/parcel/runs", { input: "ann", id })).toMatchObject({
      status: 400,
      body: { code: "BAD_ID" },
    });
});

test("starting is idempotent by id and by Idempotency-Key, and waits if asked", async () => {
  const start = (id: string | undefined, input: unknown, headers = {}): ReturnType<Api["post"]> =>
    api.post("/v1/definitions/parcel/runs", { input, ...(id !== undefined && { id }) }, headers);
  expect(await start("p-1", "ann")).toMatchObject({ status: 201, body: { id: "p-1", definition: "parcel" } });
  expect((await start("p-1", "ann")).headers.get("location")).toBe("/v1/runs/p-1");
  expect(await start("p-1", "bob")).toMatchObject({ status: 409, body: { code: "START_CONFLICT" } });
  expect(await start(undefined, "ann", { "idempotency-key": "key-1" })).toMatchObject({
    status: 201,
    body: { id: "key-1" },
  });
  expect(await start("p-2", "eve", { prefer: "wait=20" })).toMatchObject({ status: 200, body: { output: "to eve" } });
  expect((await api.post("/v1/definitions/nothing/runs", {})).status).toBe(404);
  expect((await api.post("/v1/definitions/parcel/runs", { inputs: 1 })).status).toBe(400);
});

test("a fork of a graph and of a workflow, and how they differ from their origins", async () => {
  const forked = await api.post("/v1/runs/agent-1/fork", { step: 1, patch: { n: 2 }, id: "agent-fork" });
  expect(forked).toMatchObject({ status: 201, body: { id: "agent-fork" } });
  await api.get("/v1/runs/agent-fork/result?wait=20");
  expect((await api.get("/v1/runs/agent-fork")).body.forkOf).toEqual({ run: "agent-1", at: "step 1" });
  const { body: diff } = await api.get("/v1/runs/agent-1/diff/agent-fork");
  expect(diff).toMatchObject({
    firstDivergence: "1",
    items: [{ at: "1", in: "both", values: [{ name: "n", here: 1, there: 2 }] }, {}, {}],
  });
  const { body: steps } = await api.get("/v1/runs/agent-fork/checkpoints");
  expect(steps.items.map(({ run, step }: { run: string; step: number }) => [run, step])).toEqual([
    ["agent-1", 0],
    ["agent-fork", 1],
    ["agent-fork", 2],
  ]);
  expect(steps.items[1].nodes).toMatchObject([{ name: "work" }]);
  expect((await api.get("/v1/runs/agent-fork/state?step=1")).body).toMatchObject({ state: { n: 2 }, before: { n: 0 } });
  expect((await api.get("/v1/runs/agent-1/checkpoints/9")).body.code).toBe("CHECKPOINT_NOT_FOUND");

  await api.post("/v1/runs/p-1/fork", { at: "Operation(0)", answer: "elsewhere", id: "p-fork" });
  expect((await api.get("/v1/runs/p-fork/result?wait=20")).body.output).toBe("elsewhere");
  const { body: journal } = await api.get("/v1/runs/p-fork/journal");
  expect(journal.items[0]).toMatchObject({ seq: 1, run: "p-1" });
  const own = await api.get(`/v1/runs/p-fork/journal?after=${journal.next}`);
  expect(own.body.items[0]).toMatchObject({ seq: 1, type: "RunStarted" });
  expect(own.body.items[0].run).toBeUndefined();
});

test("a promise is settled once, by a named caller, and the history says who and why", async () => {
  const approver = api.as({ name: "ann", role: "approver" });
  const refused = await approver.post("/v1/runs/order-1/cancel", {});
  expect(refused.status).toBe(403);
  const { body: open } = await approver.get("/v1/promises?name=approval");
  expect(open.items).toMatchObject([{ run: "order-1", show: { card: SECRET } }]);
  expect((await approver.post("/v1/runs/order-1/promises/approval", { value: true, reason: "fine" })).status).toBe(200);
  expect((await approver.post("/v1/runs/order-1/promises/approval", { value: true, reason: "again" })).status).toBe(
    200,
  );
  const { body } = await api.get("/v1/runs/order-1/result?wait=20");
  expect(body.output).toMatchObject({ approved: true, note: "hello" });
  const late = await approver.post("/v1/runs/order-1/promises/approval", { reject: "no" });
  expect(late.status).toBe(409);
  const { body: history } = await api.get("/v1/promises/history");
  expect(history.items).toMatchObject([
    { run: "order-1", outcome: "resolved", by: "ann", reason: "fine", value: true },
  ]);
  expect(history.covers).toMatchObject({ complete: true });
});

test("verify and replay say that code and journal agree", async () => {
  expect((await api.post("/v1/runs/order-1/verify")).body).toMatchObject({
    status: "same",
    differences: [],
    gapFree: true,
  });
  expect((await api.post("/v1/runs/agent-1/replay", { lenient: true })).body.status).toBe("same");
});

test("payloads keep their types in the tagged form, and secrets by name are redacted in the plain form of reads", async () => {
  const tagged = { $: "date", v: 0 };
  await api.post("/v1/definitions/parcel/runs?payloads=tagged", { input: tagged, id: "p-date" });
  await api.get("/v1/runs/p-date/result?wait=20");
  expect((await api.get("/v1/runs/p-date?payloads=tagged")).body.input).toEqual(tagged);
  expect((await api.get("/v1/runs/p-date")).body.input).toBe("1970-01-01T00:00:00.000Z");
  await api.post("/v1/definitions/parcel/runs", { input: { password: "hunter2" }, id: "p-secret" });
  expect(JSON.stringify((await api.get("/v1/runs/p-secret")).body)).not.toContain("hunter2");
  expect((await api.get("/v1/runs/p-secret?payloads=tagged")).body.input).toEqual({ password: "hunter2" });
});

test("queues, schedules and bulk actions change what they say they change", async () => {
  await engine.schedule("nightly", parcel, "ann", { cron: "0 3 * * *" });
  expect((await api.post("/v1/schedules/nightly/pause")).body.paused).toBe(true);
  expect((await api.post("/v1/schedules/nightly/resume")).body.nextAt).toBeDefined();
  expect((await api.post("/v1/schedules/nightly/trigger")).status).toBe(201);
  expect((await api.get("/v1/schedules/nightly")).body.reasons[0]).toMatchObject({ reason: "schedule" });
  expect((await api.delete("/v1/schedules/nightly")).status).toBe(204);
  expect((await api.get("/v1/schedules/nightly")).status).toBe(404);
  expect((await api.get("/v1/queues")).body.items[0]).toMatchObject({ name: "default", paused: false });
  expect((await api.get("/v1/queues/none")).body.code).toBe("QUEUE_NOT_FOUND");
  expect((await api.get("/v1/workers")).body.items).toMatchObject([{ alive: true, draining: false }]);
  const filter = { status: ["failed"] };
  expect((await api.post("/v1/runs/bulk", { action: "retry", filter, dryRun: true })).body).toMatchObject({ count: 1 });
  const done = await api.post("/v1/runs/bulk", { action: "retry", filter: { ids: ["fails-1", "nothing"] } });
  expect(done.body).toMatchObject({ count: 1, skipped: 0, dryRun: false });
});

test("a start has the budget of its body instead of that of its definition, and a wrong one is refused before anything is written", async () => {
  const start = (id: string, budget: object) =>
    api.post("/v1/definitions/crawl/runs", { id, budget }, { prefer: "wait=20" });
  expect((await start("crawl-1", { calls: 5, usd: 2 })).body).toMatchObject({ run: "crawl-1", status: "completed" });
  const { body } = await api.get("/v1/runs/crawl-1");
  expect(body.budget).toMatchObject({ owner: "crawl-1", cap: { calls: 5, usd: 2 }, spent: { calls: 2, usd: 0 } });
  const [now] = (await api.get("/v1/reasons?run=crawl-1")).body.items;
  expect(now.budget).toEqual({ cap: body.budget.cap, spent: body.budget.spent });
  await start("crawl-2", { calls: 1, onReached: "fail" });
  expect((await api.get("/v1/runs/crawl-2")).body).toMatchObject({
    status: "failed",
    error: { code: "BUDGET_REACHED" },
    budget: { cap: { calls: 1 }, onReached: "fail" },
  });
  for (const budget of [{ calls: -1 }, { tokens: 0.5 }, { euros: 1 }, { calls: 1, onReached: "warn" }, {}]) {
    const { status } = await start("crawl-3", budget);
    expect([JSON.stringify(budget), status]).toEqual([JSON.stringify(budget), 400]);
  }
  expect((await api.get("/v1/runs/crawl-3")).status).toBe(404);
});

test("what a failed run says starts with the last error, not with the number of attempts", async () => {
  const run = await engine.start(declined, undefined, { id: "declined-1" });
  await expect(run.result()).rejects.toThrow("card declined");
  const [now] = (await api.get("/v1/reasons?run=declined-1")).body.items;
  expect(now.text).toMatch(/^Failed after \S+ ms at Task\(0\): CardError: card declined\. All 3 attempts failed\.$/);
});
