// One attempt of a node, run again by a replay: the node's function, with a context whose every answer is in the journal.

import { decode, encode, type PayloadLimits, type RepriseError } from "../base/index.ts";
import { decideRetry, type Logger } from "../kernel/index.ts";
import {
  encodeChunk,
  entryData,
  idempotencyKeyOf,
  isSameText,
  type Execution,
  type NodeScope,
  type OperationContext,
  type RecordedEntry,
} from "../workflow/index.ts";
import type { GraphBody, GraphNode } from "./definition.ts";
import { callNode, type Place } from "./node-run.ts";

const SILENT: Logger = { info: () => {}, warn: () => {}, error: () => {} };

type Outcome =
  | { readonly status: "done"; readonly text: string | undefined }
  /** `isFinal`: the result cannot be kept, and no other attempt would change that. */
  | { readonly status: "failed"; readonly error: unknown; readonly isFinal: boolean };

/** What an end looks like in the journal. */
interface Ended {
  readonly type: "NodeCompleted" | "NodeFailed" | "NodeRetried";
  /** Canonical; empty where there is nothing. */
  readonly text: string;
}

export class ReplayedAttempt implements OperationContext {
  readonly node: GraphNode;
  readonly place: Place;
  readonly runId: string;
  readonly attempt: number;
  /** Undefined while its code is at work. */
  outcome: Outcome | undefined;
  readonly #execution: Execution;
  readonly #body: GraphBody;
  #abort: AbortController | undefined;
  #scope: NodeScope | undefined;

  constructor(execution: Execution, body: GraphBody, node: GraphNode, place: Place, attempt: number) {
    this.#execution = execution;
    this.#body = body;
    this.node = node;
    this.place = place;
    this.runId = execution.facts.id;
    this.attempt = attempt;
  }

  /** `settled` is told when the code has ended. */
  start(settled: () => void): void {
    const end = (outcome: Outcome): void => {
      this.outcome = outcome;
      settled();
    };
    callNode(this.#execution, this.#body, this.node, this.place, this).then(
      (stored) => end(kept(this.node.name, stored, this.#execution.limits)),
      (error: unknown) => end({ status: "failed", error, isFinal: false }),
    );
    this.#scope = this.#execution.nodes?.scopeOf(this.place.id);
  }

  get scope(): NodeScope | undefined {
    return this.#scope;
  }

  /** Nobody compares how it ends: another node of its step has failed, and it was told. */
  get isStopped(): boolean {
    return this.#scope?.stopped !== undefined;
  }

  stop(error: RepriseError): void {
    this.#abort ??= new AbortController();
    this.#abort.abort(error);
  }

  /** What the journal would say of its end; undefined while its code is at work. */
  ended(): Ended | undefined {
    if (this.outcome === undefined) return undefined;
    if (this.outcome.status === "done") return completed(this.outcome.text);
    const { error, isFinal } = this.outcome;
    const decision = isFinal
      ? ({ retry: false, error } as const)
      : decideRetry(this.node.policy.retry, error, this.attempt, 0);
    return decision.retry ? failed("NodeRetried", error) : failed("NodeFailed", decision.error);
  }

  // ── what the node's code is given ──

  get idempotencyKey(): string {
    const { facts } = this.#execution;
    return idempotencyKeyOf(facts.id, facts.generation, this.place.id);
  }
  get abortSignal(): AbortSignal {
    return (this.#abort ??= new AbortController()).signal;
  }
  get log(): Logger {
    return SILENT;
  }
  heartbeat(): void {}
  /** Refused as it was; what was emitted is with its readers. */
  readonly emit = (stream: string, chunk: unknown): void => void encodeChunk(this.#execution, stream, chunk);
}

function kept(node: string, stored: unknown, limits: PayloadLimits | undefined): Outcome {
  try {
    return { status: "done", text: entryData.encodeNamed(`The result of operation ${node}`, stored, limits) };
  } catch (error) {
    return { status: "failed", error, isFinal: true };
  }
}

function completed(text: string | undefined): Ended {
  return { type: "NodeCompleted", text: text ?? "" };
}

function failed(type: "NodeFailed" | "NodeRetried", error: unknown): Ended {
  return { type, text: entryData.errorText(error) };
}

/** What the journal has of an attempt's end. */
export function recordedEnd({ type, data }: RecordedEntry): Ended {
  if (type === "NodeCompleted") return completed(entryData.encodeInput(data["result"]));
  return { type: type as "NodeFailed" | "NodeRetried", text: encode(data["error"]) };
}

export function shownEnd({ text }: Ended): unknown {
  return text === "" ? undefined : decode(text);
}

export function isSameEnd(now: Ended, then: Ended): boolean {
  return now.type === then.type && isSameText(now.text, then.text);
}

/** Its end is no work of the node's own code: its time was up, or another node of its step had failed. */
export function wasInterrupted({ command, data }: RecordedEntry): boolean {
  const { error } = data as { error?: { code?: unknown; message?: string; cause?: unknown } };
  for (const one of [error, error?.cause as typeof error]) {
    if (one?.code === "NODE_STOPPED") return true;
    if (one?.code === "ATTEMPT_TIMEOUT" && one.message?.includes(`(${command})`) === true) return true;
  }
  return false;
}
