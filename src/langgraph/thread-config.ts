// Thread config: reads thread, namespace and checkpoint id from a LangGraph config, and checks them before the store is used.

import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { inspect } from "node:util";
import { RepriseError } from "../base/index.ts";

export type Config = Parameters<BaseCheckpointSaver["getTuple"]>[0];

export interface ThreadConfig {
  readonly thread: string | undefined;
  readonly namespace: string | undefined;
  readonly id: string | undefined;
}

export function threadConfigOf(config: Config): ThreadConfig {
  const { configurable } = config;
  // As in LangGraph, an empty id is none; `thread_ts` is its older name.
  const id: unknown = configurable?.["checkpoint_id"] || configurable?.["thread_ts"] || undefined;
  return {
    thread: checkedText("thread_id", configurable?.["thread_id"]),
    namespace: checkedText("checkpoint_ns", configurable?.["checkpoint_ns"], { mayBeEmpty: true }),
    id: checkedText("checkpoint_id", id),
  };
}

export function requireThread({ thread }: ThreadConfig, what: string): string {
  return thread ?? missing("thread_id", what);
}

export function requireId({ id }: ThreadConfig, what: string): string {
  return id ?? missing("checkpoint_id", what);
}

function missing(name: string, what: string): never {
  throw new RepriseError(
    "BAD_THREAD",
    `${what}: the config has no ${name}. Call the graph with { configurable: { thread_id: "…" } }.`,
    { details: { missing: name } },
  );
}

export function checkedText(name: string, value: unknown, { mayBeEmpty = false } = {}): string | undefined {
  if (value === undefined) return undefined;
  // Malformed text would be stored as different text, and two threads could become one.
  if (typeof value === "string" && value.isWellFormed() && !value.includes("\0") && (mayBeEmpty || value !== ""))
    return value;
  throw new RepriseError(
    "BAD_THREAD",
    `Expected a ${mayBeEmpty ? "" : "non-empty "}string of well-formed text as ${name}, got ${inspect(value)}.`,
    { details: { name } },
  );
}

export function configOf(thread: string, namespace: string, id: string): Config {
  return { configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id } };
}
