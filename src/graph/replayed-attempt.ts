// Replayed attempt: a node's function, run again by a replay with a context that answers from the journal.

import { decode, encode, type PayloadLimits, type RepriseError } from "../base/index.ts";
import { decideRetry, silentLogger, type DecodedEntry, type Logger } from "../kernel/index.ts";
import {
  encodeChunk,
  entryData,
  idempotencyKeyOf,
  isSameText,
  type Execution,
  type NodeScope,
  type OperationContext,
} from "../workflow/index.ts";
import type { GraphBody, GraphNode } from "./definition.ts";
import { callNode, type GraphNodeCall } from "./node-run.ts";

/** The entries that end an attempt of a node. */
export const ATTEMPT_ENDS = ["NodeCompleted", "NodeFailed", "NodeRetried"] as const;
export type AttemptEndEntry = DecodedEntry<(typeof ATTEMPT_ENDS)[number]>;

type AttemptOutcome =
  | { readonly status: "done"; readonly text: string | undefined }
  /** `isFinal`: the result cannot be stored, so another attempt would fail as well. */
  | { readonly status: "failed"; readonly error: unknown; readonly isFinal: boolean };

/** The end of an attempt, as the journal records it. */
interface AttemptEnd {
  readonly type: "NodeCompleted" | "NodeFailed" | "NodeRetried";
  /** Canonical text of the result or the error; empty without one. */
  readonly text: string;
}

export class ReplayedAttempt implements OperationContext {
  readonly node: GraphNode;
  readonly call: GraphNodeCall;
  readonly runId: string;
  /** From 1. */
  readonly attempt: number;
  /** The context of a node does not have it: a replay could not tell. */
  readonly execution: number;
  /** From 0. */
  readonly storedAttempt: number;
  /** Undefined while its code runs. */
  outcome: AttemptOutcome | undefined;
  readonly #execution: Execution;
  readonly #body: GraphBody;
  #abort: AbortController | undefined;
  #scope: NodeScope | undefined;

  constructor(execution: Execution, body: GraphBody, node: GraphNode, call: GraphNodeCall, attempt: number) {
    this.#execution = execution;
    this.#body = body;
    this.node = node;
    this.call = call;
    this.runId = execution.identity.id;
    this.storedAttempt = attempt;
    this.attempt = attempt + 1;
    this.execution = attempt + 1;
  }

  /** `onEnd` is called when the code has ended. */
  start(onEnd: () => void): void {
    const end = (outcome: AttemptOutcome): void => {
      this.outcome = outcome;
      onEnd();
    };
    callNode(this.#execution, this.#body, this.node, this.call, this).then(
      (stored) => end(kept(this.node.name, stored, this.#execution.limits)),
      (error: unknown) => end({ status: "failed", error, isFinal: false }),
    );
    this.#scope = this.#execution.nodes?.scopeOf(this.call.id);
  }

  get scope(): NodeScope | undefined {
    return this.#scope;
  }

  /** Another node of its step has failed and aborted this one, so its end is not compared. */
  get isStopped(): boolean {
    return this.#scope?.stopped !== undefined;
  }

  stop(error: RepriseError): void {
    this.#abort ??= new AbortController();
    this.#abort.abort(error);
  }

  /** The entry that its end would write; undefined while its code runs. */
  ended(): AttemptEnd | undefined {
    if (this.outcome === undefined) return undefined;
    if (this.outcome.status === "done") return completed(this.outcome.text);
    const { error, isFinal } = this.outcome;
    const decision = isFinal
      ? ({ retry: false, error } as const)
      : decideRetry(this.node.policy.retry, error, this.storedAttempt, 0);
    return decision.retry ? failed("NodeRetried", error) : failed("NodeFailed", decision.error);
  }

  // ── the context of the node's code ──

  get idempotencyKey(): string {
    const { identity } = this.#execution;
    return idempotencyKeyOf(identity.id, identity.generation, this.call.id);
  }
  get abortSignal(): AbortSignal {
    return (this.#abort ??= new AbortController()).signal;
  }
  get log(): Required<Logger> {
    return silentLogger;
  }
  heartbeat(): void {}
  /** Validates the chunk as the run did; readers already have what the run emitted. */
  readonly emit = (stream: string, chunk: unknown): void => void encodeChunk(this.#execution, stream, chunk);
}

function kept(node: string, stored: unknown, limits: PayloadLimits | undefined): AttemptOutcome {
  try {
    return { status: "done", text: entryData.encodeNamed(`The result of operation ${node}`, stored, limits) };
  } catch (error) {
    return { status: "failed", error, isFinal: true };
  }
}

function completed(text: string | undefined): AttemptEnd {
  return { type: "NodeCompleted", text: text ?? "" };
}

function failed(type: "NodeFailed" | "NodeRetried", error: unknown): AttemptEnd {
  return { type, text: entryData.errorText(error) };
}

/** The end of an attempt in the journal. */
export function recordedEnd({ type, data }: AttemptEndEntry): AttemptEnd {
  if (type === "NodeCompleted") return completed(entryData.encodeInput(data.result));
  return { type, text: encode(data.error) };
}

export function valueOfEnd({ text }: AttemptEnd): unknown {
  return text === "" ? undefined : decode(text);
}

export function isSameEnd(now: AttemptEnd, then: AttemptEnd): boolean {
  return now.type === then.type && isSameText(now.text, then.text);
}

/** The attempt timed out, or another node of its step failed: its end was not caused by its code. */
export function wasInterrupted({ command, data }: AttemptEndEntry): boolean {
  const { error } = data as { error?: { code?: unknown; message?: string; cause?: unknown } };
  for (const one of [error, error?.cause as typeof error]) {
    if (one?.code === "NODE_STOPPED") return true;
    if (one?.code === "ATTEMPT_TIMEOUT" && one.message?.includes(`(${command})`) === true) return true;
  }
  return false;
}
