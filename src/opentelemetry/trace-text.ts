// Trace contexts as text (W3C) and as objects of the OpenTelemetry API.

import { createTraceState, ROOT_CONTEXT, trace, type Context, type SpanContext } from "@opentelemetry/api";
import type { TraceContext } from "../kernel/index.ts";

export function textOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const parent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  const state = traceState?.serialize();
  return state === undefined || state === "" ? { parent } : { parent, state };
}

/** The text was checked when it was stored. */
export function spanContextOf({ parent, state }: TraceContext): SpanContext {
  const context = {
    traceId: parent.slice(3, 35),
    spanId: parent.slice(36, 52),
    traceFlags: Number.parseInt(parent.slice(53, 55), 16),
    isRemote: true,
  };
  return state === undefined ? context : { ...context, traceState: createTraceState(state) };
}

export function contextOf(stored: TraceContext): Context {
  return trace.setSpanContext(ROOT_CONTEXT, spanContextOf(stored));
}
