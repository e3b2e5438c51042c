import { expect, test } from "vitest";
import { createEngine, task, workflow } from "reprise";
import { openTelemetry } from "reprise/opentelemetry";
import { claimOf, createFolder } from "../receipts/claim-of.ts";
import { recordSpans } from "./span-recorder.ts";

const double = task("double", (_ctx, value: number) => value * 2);
const order = workflow("order", async (ctx, value: number) => {
  const prepared = await ctx.run("prepare", () => value);
  const doubled = await ctx.task(double, prepared);
  await ctx.send("mail", doubled);
  return doubled;
});

test("a trace is no part of what a run did: its claim is the same, and its replay verifies it", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  const spans = recordSpans();
  const options = { store, definitions: [order, double], outbox: { mail: () => {} }, logger: false } as const;
  for (const [id, telemetry] of [
    ["plain", undefined],
    ["traced", openTelemetry({ tracerProvider: spans.provider })],
  ] as const) {
    await using engine = await createEngine({ ...options, ...(telemetry && { telemetry }) });
    const run = await engine.start(order, 2, { id });
    expect(await run.result()).toBe(4);
    expect((await run.verify()).status).toBe("same");
    const sent = (await Array.fromAsync(run.journal())).filter(({ type }) => type === "TaskScheduled");
    expect(sent.map(({ data }) => "trace" in (data as object))).toEqual([telemetry !== undefined]);
  }
  expect(await claimOf(store, "traced")).toBe(await claimOf(store, "plain"));
});
