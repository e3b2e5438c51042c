import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { context, SpanKind, trace } from "@opentelemetry/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  append,
  createClient,
  createEngine,
  END,
  flow,
  graph,
  promise,
  START,
  task,
  typed,
  workflow,
  type Logger,
} from "reprise";
import { openTelemetry } from "reprise/opentelemetry";
import { createTestEngine } from "reprise/testing";
import { recordSpans, useAsyncContext } from "./span-recorder.ts";

let disable: () => void;
beforeAll(() => {
  disable = useAsyncContext();
});
afterAll(() => disable());

const RETRY = { maxAttempts: 3, baseDelay: 10 } as const;

test("the spans of a run are children of its start, with attempts that failed, a child and messages", async () => {
  const spans = recordSpans();
  let attempts = 0;
  const charge = task("charge", { retry: RETRY }, () => {
    attempts += 1;
    if (attempts === 1) throw new TypeError("declined");
    return attempts;
  });
  const child = workflow("child", async (ctx) => ctx.run("inner", () => 1));
  const order = workflow("order", async (ctx) => {
    await ctx.run("prepare", () => 1);
    await ctx.task(charge);
    await ctx.child(child, undefined);
    await ctx.send("mail", { to: "ada" });
    return "done";
  });
  let delivered = 0;
  await using engine = await createTestEngine({
    definitions: [order, child, charge],
    telemetry: openTelemetry({ tracerProvider: spans.provider }),
    outbox: {
      mail: () => {
        delivered += 1;
        if (delivered === 1) throw new RangeError("no route");
      },
    },
  });
  const run = await engine.start(order, undefined, { id: "order-1" });
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe("done");
  expect(spans.tree()).toEqual([
    "start order",
    "  invoke_workflow order",
    "  invoke_workflow order",
    "  invoke_workflow order",
    "  process charge failed",
    "    task charge failed",
    "  process charge",
    "    task charge",
    "  process mail failed",
    "  process mail",
    "  run prepare",
    "  send charge",
    "  send mail",
    "  start child",
    "    invoke_workflow child",
    "    run inner",
  ]);
  const [start] = spans.named("start order");
  const ids = new Set(spans.spans().map((span) => span.spanContext().traceId));
  expect(ids.size).toBe(1);
  const [send] = spans.named("send mail");
  expect(send?.kind).toBe(SpanKind.PRODUCER);
  for (const process of spans.named("process mail")) {
    expect(process.kind).toBe(SpanKind.CONSUMER);
    expect(process.links[0]?.context.spanId).toBe(send?.spanContext().spanId);
    expect(process.attributes).toMatchObject({
      "messaging.system": "reprise",
      "messaging.destination.name": "mail",
      "messaging.operation.name": "process",
      "messaging.message.id": send?.attributes["messaging.message.id"],
    });
  }
  const [failed, done] = spans.named("task charge");
  expect(failed?.attributes).toMatchObject({ "error.type": "TypeError", "reprise.attempt": 1 });
  expect(failed?.status.message).toBeUndefined();
  expect(failed?.events).toEqual([]);
  expect(done?.attributes).toMatchObject({
    "reprise.run.id": "order-1",
    "reprise.definition": "order",
    "reprise.command": "Task(0)",
    "reprise.attempt": 2,
    "reprise.execution": 2,
  });
  expect(spans.named("invoke_workflow order").map(({ attributes }) => attributes["reprise.status"])).toEqual([
    "waiting",
    "waiting",
    "completed",
  ]);
  expect(spans.named("invoke_workflow order")[0]?.attributes).toMatchObject({
    "gen_ai.operation.name": "invoke_workflow",
    "gen_ai.workflow.name": "order",
    "reprise.version": 1,
    "reprise.generation": 0,
  });
  const entries = await Array.fromAsync(run.journal());
  const { trace: stored } = entries[0]!.data as { trace: { parent: string } };
  expect(stored.parent).toBe(`00-${start!.spanContext().traceId}-${start!.spanContext().spanId}-01`);
});

test("the nodes of graphs and flows are spans below the start of their run", async () => {
  const spans = recordSpans();
  const steps = graph("steps", { state: { words: append<string>() } })
    .node("say", async (ctx) => ({ words: [await ctx.run("word", () => "hello")] }))
    .edge(START, "say")
    .edge("say", END);
  const total = flow("total", { input: typed<readonly number[]>() })
    .spread(
      "doubled",
      ["input"],
      ({ input }) => input,
      async (_ctx, price) => price * 2,
    )
    .action("sum", ["doubled"], async (_ctx, { doubled }) => doubled.reduce((a, b) => a + b, 0))
    .output(["sum"], ({ sum }) => sum);
  await using engine = await createTestEngine({
    definitions: [steps, total],
    telemetry: openTelemetry({ tracerProvider: spans.provider }),
  });
  await (await engine.start(steps, {})).result();
  expect(spans.tree()).toEqual(["start steps", "  invoke_workflow steps", "  node say", "  run word"]);
  expect(spans.named("run word")[0]?.attributes["reprise.command"]).toContain("Node(");
  spans.clear();
  expect(await (await engine.start(total, [1, 2])).result()).toBe(6);
  expect(spans.tree()).toEqual([
    "start total",
    "  invoke_workflow total",
    "  node doubled[]",
    "  node doubled[]",
    "  node sum",
  ]);
});

test("spans of the user's code are children of the span of its step", async () => {
  const spans = recordSpans();
  const tracer = spans.provider.getTracer("user");
  const call = (name: string) => async (): Promise<string> => {
    await Promise.resolve();
    tracer.startSpan(name).end();
    return trace.getSpanContext(context.active())!.spanId;
  };
  const fetchPage = task("fetch", call("GET /task"));
  const pages = workflow("pages", async (ctx) => [
    await ctx.run("read", call("GET /operation")),
    await ctx.task(fetchPage),
  ]);
  await using engine = await createTestEngine({
    definitions: [pages, fetchPage],
    telemetry: openTelemetry({ tracerProvider: spans.provider }),
  });
  const seen = await (await engine.start(pages)).result();
  expect(spans.tree()).toEqual([
    "start pages",
    "  invoke_workflow pages",
    "  process fetch",
    "    task fetch",
    "      GET /task",
    "  run read",
    "    GET /operation",
    "  send fetch",
  ]);
  expect(seen).toEqual(["run read", "task fetch"].map((name) => spans.named(name)[0]?.spanContext().spanId));
});

test("a replay makes no span again, and a crash makes none twice", async () => {
  const spans = recordSpans();
  let calls = 0;
  const long = workflow("long", { ports: { proceed: promise() } }, async (ctx) => {
    await ctx.run("first", () => (calls += 1));
    await ctx.promise("proceed");
    return ctx.run("second", () => (calls += 1));
  });
  await using engine = await createTestEngine({
    definitions: [long],
    telemetry: openTelemetry({ tracerProvider: spans.provider }),
  });
  const run = await engine.start(long, undefined, { id: "long-1" });
  await engine.clock.advance("1 second");
  await engine.crash();
  await engine.get(long, "long-1").resolve("proceed", undefined);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe(2);
  await run.replay();
  expect(spans.tree()).toEqual([
    "start long",
    "  invoke_workflow long",
    "  invoke_workflow long",
    "  run first",
    "  run second",
  ]);
});

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("the trace of a caller is the parent of the start, and another one is no other start", async () => {
  const spans = recordSpans();
  const quick = workflow("quick", async (ctx, name: string) => ctx.run("greet", () => name));
  const telemetry = openTelemetry({ tracerProvider: spans.provider });
  await using engine = await createTestEngine({ definitions: [quick], telemetry });
  const given = { parent, state: "vendor=1" };
  const run = await engine.start(quick, "Ada", { id: "quick-1", trace: given });
  await run.result();
  const [start] = spans.named("start quick");
  expect(start?.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
  expect(start?.spanContext().traceState?.serialize()).toBe("vendor=1");
  await engine.start(quick, "Ada", { id: "quick-1" });
  expect(spans.named("start quick")).toHaveLength(1);
  await expect(engine.start(quick, "Bob", { id: "quick-1" })).rejects.toMatchObject({ code: "START_CONFLICT" });
  spans.clear();
  const caller = spans.provider.getTracer("user").startSpan("caller");
  await context.with(trace.setSpan(context.active(), caller), () => engine.start(quick, "Cid"));
  expect(spans.named("start quick")[0]?.parentSpanContext?.spanId).toBe(caller.spanContext().spanId);
});

test("a process without telemetry stores the trace of its caller, and ignores an invalid one", async () => {
  const quick = workflow("quick", async (ctx) => ctx.run("greet", () => 1));
  await using engine = await createTestEngine({ definitions: [quick] });
  const traceOf = async (given: string): Promise<unknown> => {
    const run = await engine.start(quick, undefined, { trace: { parent: given } });
    const [first] = await Array.fromAsync(run.journal());
    return (first!.data as { trace?: unknown }).trace;
  };
  expect(await traceOf(parent)).toEqual({ parent });
  expect(await traceOf(`00-${"0".repeat(32)}-b7ad6b7169203331-01`)).toBeUndefined();
});

test("a fork starts a new trace with a link; the next generation continues the trace", async () => {
  const spans = recordSpans();
  const loop = workflow("loop", async (ctx, left: number): Promise<number> => {
    await ctx.run("count", () => left);
    return left === 0 ? 0 : ctx.continueAsNew(left - 1);
  });
  await using engine = await createTestEngine({
    definitions: [loop],
    telemetry: openTelemetry({ tracerProvider: spans.provider }),
  });
  const run = await engine.start(loop, 1, { id: "loop-1" });
  await run.result();
  expect(spans.tree()).toEqual([
    "start loop",
    "  invoke_workflow loop",
    "  invoke_workflow loop",
    "  run count",
    "  run count",
  ]);
  const [start] = spans.named("start loop");
  spans.clear();
  const fork = await run.fork({ at: "Operation(0)" });
  await fork.result();
  const [forked] = spans.named("start loop");
  expect(forked?.spanContext().traceId).not.toBe(start?.spanContext().traceId);
  expect(forked?.links[0]?.context.spanId).toBe(start?.spanContext().spanId);
});

test("log lines carry the trace, the run and the command, which data of the same names cannot replace", async () => {
  const spans = recordSpans();
  const lines: (object | undefined)[] = [];
  const keep = (_message: string, data?: object): number => lines.push(data);
  const logger = { debug: keep, info: keep, warn: keep, error: keep } as unknown as Logger;
  const noisy = workflow("noisy", async (ctx) => {
    const data = { run: "other", step: "Operation(9)", trace_id: "t", span_id: "s", more: 1 };
    ctx.log.info("outside", data);
    await ctx.run("inside", (op) => op.log.info("inside", data));
  });
  await using engine = await createTestEngine({
    definitions: [noisy],
    logger,
    telemetry: openTelemetry({ tracerProvider: spans.provider }),
  });
  await (await engine.start(noisy, undefined, { id: "noisy-1" })).result();
  const idsOf = (name: string) => {
    const { traceId, spanId } = spans.named(name)[0]!.spanContext();
    return { trace_id: traceId, span_id: spanId, run: "noisy-1", more: 1 };
  };
  expect(lines).toEqual([
    expect.objectContaining(idsOf("start noisy")),
    expect.objectContaining({ ...idsOf("run inside"), step: "Operation(0)" }),
  ]);
});

test("a client makes the span of its start, and the worker of another process continues its trace", async () => {
  const [ofClient, ofWorker] = [recordSpans(), recordSpans()];
  const store = `sqlite:${join(await mkdtemp(join(tmpdir(), "reprise-otel-")), "runs.db")}`;
  const quick = workflow("quick", async (ctx) => ctx.run("greet", () => 1));
  const definitions = [quick];
  await using client = await createClient({
    store,
    definitions,
    logger: false,
    telemetry: openTelemetry({ tracerProvider: ofClient.provider }),
  });
  const run = await client.start(quick);
  await using engine = await createEngine({
    store,
    definitions,
    logger: false,
    telemetry: openTelemetry({ tracerProvider: ofWorker.provider }),
  });
  await engine.get(quick, run.id).result();
  expect(ofClient.tree()).toEqual(["start quick"]);
  expect(ofWorker.tree()).toEqual(["invoke_workflow quick", "run greet"]);
  const [start] = ofClient.named("start quick");
  for (const span of ofWorker.spans()) expect(span.parentSpanContext?.spanId).toBe(start?.spanContext().spanId);
});
