// The names, kinds and attributes of spans. docs/guides/observability.md has the table.

import { SpanKind as Kind, type Attributes } from "@opentelemetry/api";
import type { SpanKind, SpanStart } from "../kernel/index.ts";
import { idempotencyKeyOf } from "../workflow/index.ts";

const PREFIXES: Readonly<Record<SpanKind, string>> = {
  start: "start",
  invoke: "invoke_workflow",
  run: "run",
  node: "node",
  task: "task",
  send: "send",
  process: "process",
  chat: "chat",
  execute_tool: "execute_tool",
};

export function spanName({ kind, name }: Pick<SpanStart, "kind" | "name">): string {
  return `${PREFIXES[kind]} ${name}`;
}

export function otelKind(kind: SpanKind): Kind {
  if (kind === "send") return Kind.PRODUCER;
  if (kind === "chat") return Kind.CLIENT;
  return kind === "process" ? Kind.CONSUMER : Kind.INTERNAL;
}

export function attributesOf(start: SpanStart): Attributes {
  const { kind, name, run, definition, version, generation, command, attempt, execution, queue } = start;
  const attributes: Attributes = { ...start.attributes, "reprise.run.id": run };
  if (definition !== undefined) attributes["reprise.definition"] = definition;
  if (version !== undefined) attributes["reprise.version"] = version;
  if (generation !== undefined) attributes["reprise.generation"] = generation;
  if (command !== undefined) attributes["reprise.command"] = command;
  if (attempt !== undefined) attributes["reprise.attempt"] = attempt;
  if (execution !== undefined) attributes["reprise.execution"] = execution;
  if (queue !== undefined) attributes["reprise.queue"] = queue;
  if (kind === "invoke") {
    attributes["gen_ai.operation.name"] = "invoke_workflow";
    attributes["gen_ai.workflow.name"] = name;
    attributes["gen_ai.conversation.id"] = run;
  } else if (kind === "chat" || kind === "execute_tool") {
    attributes["gen_ai.operation.name"] = kind;
    attributes["gen_ai.conversation.id"] = run;
  } else if (kind === "send" || kind === "process") {
    attributes["messaging.system"] = "reprise";
    attributes["messaging.destination.name"] = name;
    attributes["messaging.operation.name"] = kind;
    attributes["messaging.operation.type"] = kind;
    if (command !== undefined) attributes["messaging.message.id"] = idempotencyKeyOf(run, generation ?? 0, command);
  }
  return attributes;
}

/** Of few values: a code, or the name of the error's class. */
export function errorType(error: unknown): string {
  if (!(error instanceof Error)) return "_OTHER";
  const { code } = error as { code?: unknown };
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : error.name;
}
