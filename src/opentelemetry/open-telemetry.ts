// openTelemetry: the spans of an engine, made with the OpenTelemetry API.
//
// open-telemetry.O1. A span is started when its work begins, with its times from the clock of the store, and ended after the
//   commit that holds the end (telemetry.T1). An SDK exports a span when it ends, so one that is dropped is never exported.
// open-telemetry.O2. User code runs with its span active and nothing else of the process: the context that happens to be active
//   where the worker runs belongs to another caller.

import {
  context,
  createContextKey,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  type Context,
  type HrTime,
  type Link,
  type Span,
  type SpanContext,
  type Tracer,
  type TracerProvider,
} from "@opentelemetry/api";
import { checkOptionNames, RepriseError } from "../base/index.ts";
import {
  withoutSecrets,
  type OpenSpan,
  type SpanKind,
  type SpanOutcome,
  type SpanStart,
  type Telemetry,
  type TraceContext,
} from "../kernel/index.ts";
import { attributesOf, errorType, otelKind, spanName } from "./span-attributes.ts";
import { contextOf, spanContextOf, textOf } from "./trace-text.ts";

/** Options of `openTelemetry`. */
export interface OpenTelemetryOptions {
  /** Default: the global provider of the API. */
  tracerProvider?: TracerProvider;
  /** `"content"` records messages and stacks of errors, which may contain payloads. Default: only their type. */
  capture?: "content";
}

/** The spans whose run's trace is remembered, for log lines. */
const REMEMBERED_RUNS = 10_000;
const FAILED: ReadonlySet<string> = new Set(["failed", "blocked", "determinism_violation"]);
const ACTIVE = createContextKey("reprise: the span whose code is running");

interface Active {
  readonly run: string;
  readonly traceId: string;
  readonly spanId: string;
}

/**
 * Makes spans of runs, steps, tasks and messages with the OpenTelemetry API.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { openTelemetry } from "reprise/opentelemetry";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({
 *   store: "sqlite::memory:",
 *   definitions: [hello],
 *   telemetry: openTelemetry(),
 * });
 * console.log(await (await engine.start(hello, "Ada")).result());
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkOptionNames(options, ["tracerProvider", "capture"], "openTelemetry");
  const { tracerProvider = trace.getTracerProvider(), capture } = options;
  if (capture !== undefined && capture !== "content")
    throw new RepriseError(
      "BAD_OPTIONS",
      `openTelemetry: expected capture: "content" or none, got ${String(capture)}.`,
    );
  return new EngineSpans(tracerProvider.getTracer("reprise"), capture === "content");
}

class EngineSpans implements Telemetry {
  readonly #tracer: Tracer;
  readonly #capturesContent: boolean;
  /** Least recently begun first. */
  readonly #runs = new Map<string, Active>();

  constructor(tracer: Tracer, capturesContent: boolean) {
    this.#tracer = tracer;
    this.#capturesContent = capturesContent;
  }

  begin(start: SpanStart): OpenSpan | undefined {
    const { kind, run, parent } = start;
    const within = kind === "start" ? callerContext(start) : parent === undefined ? ROOT_CONTEXT : contextOf(parent);
    const startTime = hrTime(start.startedAt ?? start.now());
    // A task is received and executed: two spans, which end together.
    const outer = kind === "task" ? this.#start(receivedBy(start), within, startTime) : undefined;
    const inner = kind === "task" ? { ...start, link: undefined } : start;
    const span = this.#start(inner, outer === undefined ? within : trace.setSpan(within, outer), startTime);
    const spanContext = span.spanContext();
    if (!isSpanContextValid(spanContext)) return undefined;
    this.#remember(run, kind === "start" ? textOf(spanContext) : parent);
    return new EngineSpan(start, span, outer, spanContext, this.#capturesContent);
  }

  #start(start: SpanStart, within: Context, startTime: HrTime): Span {
    const links = start.link === undefined ? undefined : [linkTo(start.link)];
    const { kind } = start;
    const attributes = attributesOf(start);
    return this.#tracer.startSpan(
      spanName(start),
      { kind: otelKind(kind), attributes, startTime, ...(links && { links }) },
      within,
    );
  }

  #remember(run: string, stored: TraceContext | undefined): void {
    if (stored === undefined || this.#runs.has(run)) return;
    const { traceId, spanId } = spanContextOf(stored);
    this.#runs.set(run, { run, traceId, spanId });
    if (this.#runs.size <= REMEMBERED_RUNS) return;
    for (const oldest of this.#runs.keys()) return void this.#runs.delete(oldest);
  }

  correlate(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { run } = fields;
    const active = context.active().getValue(ACTIVE) as Active | undefined;
    const isOfRun = active !== undefined && (run === undefined || run === active.run);
    const found = isOfRun ? active : typeof run === "string" ? this.#runs.get(run) : undefined;
    if (found === undefined) return fields;
    return { trace_id: found.traceId, span_id: found.spanId, ...fields };
  }
}

class EngineSpan implements OpenSpan {
  readonly trace: TraceContext;
  readonly #start: Pick<SpanStart, "now" | "run">;
  readonly #kind: SpanKind;
  readonly #span: Span;
  readonly #outer: Span | undefined;
  readonly #capturesContent: boolean;
  #endTime: HrTime | undefined;
  #outcome: SpanOutcome | undefined;
  #ended = false;

  constructor(start: SpanStart, span: Span, outer: Span | undefined, own: SpanContext, capturesContent: boolean) {
    this.#start = start;
    this.#kind = start.kind;
    this.#span = span;
    this.#outer = outer;
    this.#capturesContent = capturesContent;
    this.trace = textOf(own);
  }

  /** open-telemetry.O2 */
  call<T>(work: () => T): T {
    const { traceId, spanId } = this.#span.spanContext();
    const active: Active = { run: this.#start.run, traceId, spanId };
    return context.with(trace.setSpan(ROOT_CONTEXT, this.#span).setValue(ACTIVE, active), work);
  }

  finish(outcome?: SpanOutcome): void {
    this.#endTime = hrTime(this.#start.now());
    this.#outcome = outcome;
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const endTime = this.#endTime ?? hrTime(this.#start.now());
    for (const span of [this.#span, this.#outer]) {
      if (span === undefined) continue;
      if (span.isRecording()) this.#conclude(span);
      span.end(endTime);
    }
  }

  #conclude(span: Span): void {
    const { error, status } = this.#outcome ?? {};
    if (status !== undefined) span.setAttribute("reprise.status", status);
    if (this.#outcome === undefined || !("error" in this.#outcome)) {
      if (status !== undefined && FAILED.has(status)) span.setStatus({ code: SpanStatusCode.ERROR });
      return;
    }
    span.setAttribute("error.type", errorType(error));
    if (!this.#capturesContent || !(error instanceof Error)) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      return;
    }
    const message = withoutSecrets(error.message);
    span.setStatus({ code: SpanStatusCode.ERROR, message });
    if (this.#kind === "task" && span === this.#outer) return;
    const exception = { name: error.name, message, ...(error.stack && { stack: withoutSecrets(error.stack) }) };
    span.recordException(exception, this.#endTime);
  }
}

/** The context that a start is called in: an explicit one, unless the active one already continues its trace. */
function callerContext({ parent, isRoot }: SpanStart): Context {
  if (isRoot === true) return parent === undefined ? ROOT_CONTEXT : contextOf(parent);
  const active = context.active();
  if (parent === undefined) return active;
  return trace.getSpanContext(active)?.traceId === parent.parent.slice(3, 35) ? active : contextOf(parent);
}

function receivedBy(start: SpanStart): SpanStart {
  return { ...start, kind: "process", name: start.queue ?? start.name };
}

function linkTo(stored: TraceContext): Link {
  return { context: spanContextOf(stored) };
}

function hrTime(at: number): HrTime {
  const seconds = Math.floor(at / 1_000);
  return [seconds, Math.round((at - seconds * 1_000) * 1_000_000)];
}
