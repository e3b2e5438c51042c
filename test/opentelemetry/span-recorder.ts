// A provider that keeps every exported span, and the tree of their names.

import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";

export interface SpanRecorder {
  readonly provider: BasicTracerProvider;
  spans(): readonly ReadableSpan[];
  named(name: string): readonly ReadableSpan[];
  /** `start a > run b`: each span below its parent, siblings by name. */
  tree(): readonly string[];
  clear(): void;
}

export function recordSpans(): SpanRecorder {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  return {
    provider,
    spans,
    named: (name) => spans().filter((span) => span.name === name),
    tree: () => treeOf(spans()),
    clear: () => exporter.reset(),
  };
}

function treeOf(spans: readonly ReadableSpan[]): readonly string[] {
  const ids = new Set(spans.map((span) => span.spanContext().spanId));
  const lines: string[] = [];
  const walk = (parent: string | undefined, depth: number): void => {
    const children = spans.filter(({ parentSpanContext }) =>
      parent === undefined
        ? parentSpanContext === undefined || !ids.has(parentSpanContext.spanId)
        : parentSpanContext?.spanId === parent,
    );
    for (const span of children.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))) {
      lines.push(`${"  ".repeat(depth)}${span.name}${span.status.code === 2 ? " failed" : ""}`);
      walk(span.spanContext().spanId, depth + 1);
    }
  };
  walk(undefined, 0);
  return lines;
}

/** Node's context manager, for the tests of one file. */
export function useAsyncContext(): () => void {
  const manager = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(manager);
  return () => {
    context.disable();
    trace.disable();
  };
}
