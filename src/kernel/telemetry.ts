// Telemetry: the port between the engine and a library for tracing. Without it, no call is made and nothing is allocated.
//
// telemetry.T1. A span is begun when its work begins, so that spans of the user's libraries are its children, and ended after
//   the commit that holds the end of the work is durable. A span that is never ended does not exist: a commit that the store
//   refuses, and a crash, leave none behind. A replay begins no span, because it executes no work.
// telemetry.T2. The context of a run's `start` is in its first entry, and is the parent of every other span of the run. It is no
//   part of what a run did: neither claims nor the comparison of two starts read it.

import { encode, type EpochMs } from "../base/index.ts";

/** A W3C trace context, as text: `traceparent` and `tracestate`. */
export interface TraceContext {
  readonly parent: string;
  readonly state?: string | undefined;
}

/** Of a task or a message: the context of its run, and the id of the span that sent it. */
export interface SentTrace extends TraceContext {
  readonly span: string;
}

export type SpanKind = "start" | "invoke" | "run" | "node" | "task" | "send" | "process" | "chat" | "execute_tool";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | string[]>>;

/** What a library says about a step that it makes: the span has another kind and name, and more attributes. */
export interface StepTrace {
  readonly kind: "chat" | "execute_tool";
  readonly name: string;
  readonly attributes: SpanAttributes;
  /** Attributes with payloads; called only if the span records contents. */
  readonly content?: () => SpanAttributes;
  /** Of the value that the function of the step returned. */
  readonly resultOf?: (value: unknown) => SpanAttributes;
  readonly resultContentOf?: (value: unknown) => SpanAttributes;
}

/** The key of a `StepTrace` in the options of a step. Options of users have no such key. */
export const STEP_TRACE = Symbol.for("reprise.step-trace");

export function stepTraceOf(options: object): StepTrace | undefined {
  return (options as { [STEP_TRACE]?: StepTrace })[STEP_TRACE];
}

/** What is known when a span begins. */
export interface SpanStart {
  readonly kind: SpanKind;
  /** Of the definition, the step or the destination. */
  readonly name: string;
  /** The id of the run. */
  readonly run: string;
  /** The clock of the store. */
  readonly now: () => EpochMs;
  /** Default: now. */
  readonly startedAt?: EpochMs;
  /** Absent: a new trace; of `start` the active context of the caller. */
  readonly parent?: TraceContext | undefined;
  /** `start` only: never a child of the active context. */
  readonly isRoot?: boolean;
  /** Of a fork: the context of its origin. Of `process`: what was sent. */
  readonly link?: TraceContext | undefined;
  readonly definition?: string;
  readonly version?: number;
  readonly generation?: number;
  readonly command?: string;
  /** From 1. */
  readonly attempt?: number;
  readonly execution?: number;
  readonly queue?: string | undefined;
  readonly attributes?: SpanAttributes | undefined;
}

export interface SpanOutcome {
  readonly error?: unknown;
  /** Of a run. */
  readonly status?: string;
}

export interface OpenSpan {
  readonly trace: TraceContext;
  /** Calls the user's code as the active span. */
  call<T>(work: () => T): T;
  /** Adds attributes. `content` has payloads, and is called only if the span records them. */
  annotate(attributes: SpanAttributes, content?: () => SpanAttributes): void;
  /** The work is over now. The last call counts. */
  finish(outcome?: SpanOutcome): void;
  /** telemetry.T1. Called once, when the commit is durable. */
  end(): void;
}

/** Receives the spans of an engine: made by `openTelemetry()` of `reprise/opentelemetry`. */
export interface Telemetry {
  /** Undefined: nothing records spans, as without an SDK. */
  begin(start: SpanStart): OpenSpan | undefined;
  /** The fields of a log line, with those of its trace. */
  correlate(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
}

/** What becomes durable in a commit may carry the span that ends with it. Only on its way into the store. */
export interface Traced {
  readonly span?: OpenSpan | undefined;
}

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const STATE_LIMIT = 512;

/** Undefined for anything that is no valid trace context; an invalid state alone is left out. */
export function traceContextOf(parent: unknown, state?: unknown): TraceContext | undefined {
  if (typeof parent !== "string" || !TRACEPARENT.test(parent)) return undefined;
  const isState =
    typeof state === "string" && state !== "" && state.length <= STATE_LIMIT && /^[\x20-\x7e]+$/.test(state);
  return isState ? { parent, state } : { parent };
}

/** The id of the span in a `traceparent`. */
export function spanIdOf({ parent }: TraceContext): string {
  return parent.slice(36, 52);
}

/** The context of the span that sent a task or a message. */
export function sentContext({ parent, span, state }: SentTrace): TraceContext {
  return { parent: `${parent.slice(0, 36)}${span}${parent.slice(52)}`, state };
}

/** The data of the entry of what was sent: `trace` is its last member, as everywhere the members are in order. */
export function withTrace(data: string, trace: SentTrace): string {
  return `${data.slice(0, -1)},"trace":${encode(trace)}}`;
}
