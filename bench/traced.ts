// Traced: the telemetry that `--telemetry` names. Worker processes inherit it through the environment.

import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { ClientOptions } from "reprise";

const VARIABLE = "REPRISE_BENCH_TELEMETRY";
const KINDS = ["off", "api", "sdk"] as const;

/** `api`: the API without an SDK. `sdk`: every span is sampled, and dropped where it would be sent. */
export function chooseTelemetry(kind: string): boolean {
  process.env[VARIABLE] = kind;
  return (KINDS as readonly string[]).includes(kind);
}

export async function chosenTelemetry(): Promise<Pick<ClientOptions<never>, "telemetry">> {
  const kind = process.env[VARIABLE] ?? "off";
  if (kind === "off") return {};
  const { openTelemetry } = await import("reprise/opentelemetry");
  if (kind === "api") return { telemetry: openTelemetry() };
  const { BasicTracerProvider, BatchSpanProcessor } = await import("@opentelemetry/sdk-trace-base");
  const dropped: SpanExporter = { export: (_spans, done) => done({ code: 0 }), shutdown: () => Promise.resolve() };
  const spanProcessors = [new BatchSpanProcessor(dropped, { maxQueueSize: 65_536, maxExportBatchSize: 8_192 })];
  return { telemetry: openTelemetry({ tracerProvider: new BasicTracerProvider({ spanProcessors }) }) };
}
