// Approvals: people decide about calls of tools, each under a key of its own.
//
// approvals.P1. The key of a call is its id. A call with an id that was used before gets another key: an answer counts only for the
//   call that a person was shown. In a node of a graph the key also names the item, because other nodes may have calls of that id.

import { digestOf } from "../base/index.ts";
import { promise, type PromisePort, type Schema } from "../kernel/index.ts";
import type { DurableContext } from "../workflow/index.ts";

/** What a person answers about a call of a tool. */
export interface Approval {
  /** False: the tool is not called, and the model gets `denied: <reason>`. */
  ok: boolean;
  /** Who decided. */
  by?: string;
  /** Why. */
  reason?: string;
  /** Replaces the input that the model wrote. The schema of the tool checks it. */
  input?: unknown;
}

const PROPERTIES = {
  ok: { type: "boolean", description: "Whether the tool is called" },
  by: { type: "string", description: "Who decided" },
  reason: { type: "string", description: "Why" },
  input: { description: "Replaces the input of the tool" },
} as const;

const JSON_SCHEMA = { type: "object", properties: PROPERTIES, required: ["ok"], additionalProperties: false };
const described = { input: () => JSON_SCHEMA, output: () => JSON_SCHEMA };

const schema: Schema<Approval> = {
  "~standard": { version: 1, vendor: "reprise", validate: parseApproval, ...{ jsonSchema: described } },
};

function parseApproval(value: unknown): { value: Approval } | { issues: { message: string; path: string[] }[] } {
  const refuse = (message: string, ...path: string[]): { issues: { message: string; path: string[] }[] } => ({
    issues: [{ message, path }],
  });
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refuse("expected an object such as { ok: true }");
  const given = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(given)) if (!Object.hasOwn(PROPERTIES, name)) return refuse("unknown member", name);
  if (typeof given["ok"] !== "boolean") return refuse("expected true or false", "ok");
  for (const name of ["by", "reason"])
    if (given[name] !== undefined && typeof given[name] !== "string") return refuse("expected a text", name);
  return { value: given as unknown as Approval };
}

/**
 * Declares the promises in which people approve calls of tools: `durable(ctx, { approve })` opens one per call.
 *
 * @example
 * ```ts
 * import { createClient, workflow } from "reprise";
 * import { approvals } from "reprise/ai";
 * const support = workflow("support", { ports: { approve: approvals() } }, async (ctx) => ctx.promise("approve"));
 * const client = await createClient({ store: "sqlite:runs.db", definitions: [support] });
 * for await (const { runId, key, show } of client.promises({ name: "approve" })) {
 *   console.log(show); // { tool: "refund", input: { order: "1042" } }
 *   await client.get(support, runId).resolve("approve", { ok: true }, { key: key!, by: "Eve" });
 * }
 * ```
 */
export function approvals(): PromisePort<Approval> {
  return promise(schema);
}

/** The names of ports whose value is an approval. */
export type ApprovalPorts<M> = {
  [K in keyof M]: M[K] extends PromisePort<infer T> ? ([T] extends [Approval] ? K : never) : never;
}[keyof M] &
  string;

/** The result that the model gets for a refused call. */
export function deniedText({ reason }: Approval): string {
  return `denied: ${reason === undefined || reason === "" ? "no reason was given" : reason}`;
}

const usedKeys = new WeakMap<DurableContext<any>, Set<string>>();
const MAX_KEY_LENGTH = 150;

/** approvals.P1 */
export function approvalKey(ctx: DurableContext<any>, toolCallId: string): string {
  const used = usedKeys.get(ctx) ?? new Set<string>();
  usedKeys.set(ctx, used);
  const node = ctx as { step?: number; attempt?: number };
  const place = node.step === undefined ? "" : `@${node.step}.${node.attempt}-${ctx.uuid().slice(0, 8)}`;
  const id = toolCallId.length <= 100 ? toolCallId : digestOf("reprise/tool-call/v1", toolCallId);
  const base = `${id || "call"}${place}`.slice(0, MAX_KEY_LENGTH);
  let key = base;
  for (let n = 2; used.has(key); n += 1) key = `${base}#${n}`;
  used.add(key);
  return key;
}
