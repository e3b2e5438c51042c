// A worker whose exported spans are lines of a file. `argv`: store, file, and `start` for the process that starts the run.

import { appendFileSync } from "node:fs";
import { BasicTracerProvider, SimpleSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base";
import { createEngine, task, workflow } from "reprise";
import { openTelemetry } from "reprise/opentelemetry";

const [, , store = "", file = "", role] = process.argv;

const exporter: SpanExporter = {
  export(spans, done) {
    for (const { name, attributes } of spans) appendFileSync(file, `${JSON.stringify({ name, ...attributes })}\n`);
    done({ code: 0 });
  },
  shutdown: () => Promise.resolve(),
};
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

const bill = task("bill", () => 1);
const order = workflow("order", async (ctx) => {
  await ctx.run("first", () => 1);
  await ctx.task(bill);
  await ctx.run("hang", async () => {
    process.stdout.write("hanging\n");
    if (role === "start") await new Promise(() => setInterval(() => {}, 1_000));
  });
  return ctx.run("last", () => 2);
});

const engine = await createEngine({
  store,
  definitions: [order, bill],
  worker: { lease: 300 },
  logger: false,
  telemetry: openTelemetry({ tracerProvider }),
});
if (role === "start") await engine.start(order, undefined, { id: "order-1" });
else {
  await engine.get(order, "order-1").result();
  process.stdout.write("ended\n");
  await engine.close();
}
