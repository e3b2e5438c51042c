// Log lines over HTTP: of which step they are, and what a line may hold.

import { createEngine, graph, END, START, workflow, type Engine } from "reprise";
import { LogRing } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openApi, type Api } from "./api.ts";

const cycle: { self?: unknown } = {};
cycle.self = cycle;
let deep: unknown = null;
for (let depth = 0; depth < 50_000; depth += 1) deep = [deep];
const changed = { state: "as it was" };

const talks = workflow("talks", async (ctx) => {
  await ctx.run("first", (op) => {
    op.log.info("begins", { token: "t-1", at: new Date(0), n: 1n });
    op.log.warn("hostile", { cycle });
    op.log.warn("deep", { deep });
    op.log.warn("long", { text: "x".repeat(200_000) });
    op.log.info("changed", changed);
    changed.state = "as it is";
  });
  await ctx.run("second", (op) => op.log.error("stops", { run: "agent-1", step: "Operation(0)" }));
});
const agent = graph("agent", { state: {} })
  .node("think", async (ctx) => {
    await ctx.run("call", (op) => op.log.info("calls"));
    return {};
  })
  .edge(START, "think")
  .edge("think", END);

let engine: Engine<any>;
let api: Api;

beforeAll(async () => {
  const logs = new LogRing();
  const logger = logs.logger({ info: () => {}, warn: () => {}, error: () => {} });
  engine = await createEngine({ store: "sqlite::memory:", definitions: [talks, agent], logger });
  api = openApi(engine, { logs, logger });
  await (await engine.start(talks, undefined, { id: "talks-1" })).result();
  await (await engine.start(agent, {}, { id: "agent-1" })).result();
});

afterAll(async () => {
  await api[Symbol.asyncDispose]();
  await engine.close();
});

test("a line names the command whose code wrote it, and the lines of one command can be read", async () => {
  const { body } = await api.get("/v1/runs/talks-1/logs");
  expect(body.items.map((line: any) => [line.command, line.level, line.message])).toEqual([
    ["Operation(0)", "info", "begins"],
    ["Operation(0)", "warn", "hostile"],
    ["Operation(0)", "warn", "deep"],
    ["Operation(0)", "warn", "long"],
    ["Operation(0)", "info", "changed"],
    ["Operation(1)", "error", "stops"],
  ]);
  const second = await api.get("/v1/runs/talks-1/logs?command=Operation(1)");
  expect(second.body.items).toEqual([body.items.at(-1)]);
  const ofNode = await api.get("/v1/runs/agent-1/logs");
  const [{ command }] = ofNode.body.items;
  expect(command).toContain("Operation(0)");
  expect((await api.get(`/v1/runs/agent-1/logs?command=${encodeURIComponent(command)}`)).body.items).toHaveLength(1);
});

test("the data of a line is what it was when it was logged, without secrets, and never fails the request", async () => {
  const { status, body } = await api.get("/v1/runs/talks-1/logs");
  expect(status).toBe(200);
  expect(body.items.slice(0, 5).map((line: any) => line.data)).toEqual([
    { token: "[redacted]", at: "1970-01-01T00:00:00.000Z", n: "1" },
    { cycle: { self: "[circular]" } },
    { deep: expect.anything() },
    { leftOut: "200011 characters" },
    { state: "as it was" },
  ]);
  const ring = new LogRing();
  ring.logger({ info: () => {}, warn: () => {}, error: () => {} }).info("as it is", { run: "r", step: "s", cycle });
  expect(ring.of("r")).toMatchObject([{ step: "s", data: { leftOut: "The data cannot be written as JSON." } }]);
});

test("who acted on a run, and why, is among its lines", async () => {
  await api.as({ name: "ann", role: "operator" }).post("/v1/runs/talks-1/pause", { reason: "too late" });
  const { body } = await api.get("/v1/runs/talks-1/logs");
  expect(body.items.at(-1)).toMatchObject({
    message: "audit pauseRun",
    data: { caller: "ann", reason: "too late", outcome: "refused", code: "RUN_ENDED" },
  });
});

test("lines are paged in both orders, and a cursor of another process starts again", async () => {
  const pages = async (query: string): Promise<string[]> => {
    const messages: string[] = [];
    for (let after = ""; ;) {
      const { body } = await api.get(`/v1/runs/talks-1/logs?limit=2&command=Operation(0)${query}${after}`);
      expect(body.items.length).toBeLessThanOrEqual(2);
      messages.push(...body.items.map((line: any) => line.message));
      if (body.next === undefined) return messages;
      expect(body.next).toBe(body.items.at(-1).cursor);
      after = `&after=${encodeURIComponent(body.next)}`;
    }
  };
  const all = ["begins", "hostile", "deep", "long", "changed"];
  expect(await pages("")).toEqual(all);
  expect(await pages("&order=last")).toEqual(all.toReversed());
  const { body } = await api.get("/v1/runs/talks-1/logs?limit=1&after=another-3");
  expect(body.items.map((line: any) => line.message)).toEqual(["begins"]);
});
