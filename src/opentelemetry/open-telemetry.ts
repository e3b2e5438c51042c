// openTelemetry: the spans of an engine, made with the OpenTelemetry API.
//
// open-telemetry.O1. A span is started when its work begins, with its times from the clock of the store, and ended after the
//   commit that holds the end (telemetry.T1). An SDK exports a span when it ends, so one that is dropped is never exported.
// open-telemetry.O2. User code runs with its span active and nothing else of the process: the context that happens to be active
//   where the worker runs belongs to another caller.

import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  type Context,
  type HrTime,
  type Link,
  type Span,
  type Tracer,
  type TracerProvider,
} from "@opentelemetry/api";
import { checkOptionNames, RepriseError } from "../base/index.ts";
import {
  withoutSecrets,
  type OpenSpan,
  type SpanAttributes,
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
  /**
   * `"content"` records messages and stacks of errors, and the prompts, answers and inputs of models and tools. Default: only the
   * types of errors, and no contents.
   */
  capture?: "content";
}

/** The spans whose run's trace is remembered, for log lines. */
const REMEMBERED_RUNS = 10_000;
const FAILED: ReadonlySet<string> = new Set(["failed", "blocked", "determinism_violation"]);

/** The trace of a run, for its log lines and as the parent of its next spans. */
interface RunTrace {
  readonly parent: string;
  readonly within: Context;
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
  readonly #runs = new Map<string, RunTrace>();

  constructor(tracer: Tracer, capturesContent: boolean) {
    this.#tracer = tracer;
    this.#capturesContent = capturesContent;
  }

  begin(start: SpanStart): OpenSpan | undefined {
    const { kind, run, parent } = start;
    const within = kind === "start" ? callerContext(start) : this.#traceOf(run, parent);
    const startTime = hrTime(start.startedAt ?? start.now());
    // A task is received and executed: two spans, which end together.
    const outer = kind === "task" ? this.#start(receivedBy(start), within, startTime) : undefined;
    const inner = kind === "task" ? { ...start, link: undefined } : start;
    const span = this.#start(inner, outer === undefined ? within : trace.setSpan(within, outer), startTime);
    if (!span.isRecording() && !isSpanContextValid(span.spanContext())) return undefined;
    if (kind === "start") this.#traceOf(run, textOf(span.spanContext()));
    return new EngineSpan(start, span, outer, this.#capturesContent);
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

  /** The stored context of a run as an object, made once for all its spans. */
  #traceOf(run: string, stored: TraceContext | undefined): Context {
    if (stored === undefined) return ROOT_CONTEXT;
    const known = this.#runs.get(run);
    if (known?.parent === stored.parent) return known.within;
    const { traceId, spanId } = spanContextOf(stored);
    const within = contextOf(stored);
    this.#runs.set(run, { parent: stored.parent, within, traceId, spanId });
    if (this.#runs.size > REMEMBERED_RUNS) {
      const [oldest] = this.#runs.keys();
      if (oldest !== undefined) this.#runs.delete(oldest);
    }
    return within;
  }

  correlate(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { run } = fields;
    const known = typeof run === "string" ? this.#runs.get(run) : undefined;
    const active = trace.getSpanContext(context.active());
    // The active span may be of another caller, where the worker runs on its behalf.
    const found = active !== undefined && active.traceId === known?.traceId ? active : known;
    if (found === undefined) return fields;
    const own = { trace_id: found.traceId, span_id: found.spanId };
    return { ...own, ...fields, ...own };
  }
}

class EngineSpan implements OpenSpan {
  readonly #start: Pick<SpanStart, "now" | "kind">;
  readonly #span: Span;
  readonly #outer: Span | undefined;
  readonly #capturesContent: boolean;
  #endTime: HrTime | undefined;
  #outcome: SpanOutcome | undefined;
  #ended = false;

  constructor(start: SpanStart, span: Span, outer: Span | undefined, capturesContent: boolean) {
    this.#start = start;
    this.#span = span;
    this.#outer = outer;
    this.#capturesContent = capturesContent;
  }

  get trace(): TraceContext {
    return textOf(this.#span.spanContext());
  }

  /** open-telemetry.O2 */
  call<T>(work: () => T): T {
    return context.with(trace.setSpan(ROOT_CONTEXT, this.#span), work);
  }

  annotate(attributes: SpanAttributes, content?: () => SpanAttributes): void {
    if (!this.#span.isRecording()) return;
    this.#span.setAttributes(attributes);
    if (!this.#capturesContent || content === undefined) return;
    for (const [name, value] of Object.entries(content()))
      this.#span.setAttribute(name, typeof value === "string" ? withoutSecrets(value) : value);
  }

  finish(outcome?: SpanOutcome): void {
    this.#endTime = hrTime(this.#start.now());
    this.#outcome = outcome;
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const endTime = this.#endTime ?? hrTime(this.#start.now());
    this.#end(this.#span, endTime);
    if (this.#outer !== undefined) this.#end(this.#outer, endTime);
  }

  #end(span: Span, endTime: HrTime): void {
    if (this.#outcome !== undefined && span.isRecording()) this.#conclude(span, this.#outcome);
    span.end(endTime);
  }

  #conclude(span: Span, outcome: SpanOutcome): void {
    const { error, status } = outcome;
    if (status !== undefined) span.setAttribute("reprise.status", status);
    if (!("error" in outcome)) {
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
    if (span === this.#outer) return;
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
