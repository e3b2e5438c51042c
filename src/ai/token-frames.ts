// Token frames: what readers of a run see of a model call while it is in progress.
//
// token-frames.F1. The frames of one execution of a call are in order: `begin`, deltas, then `end` or `failed`.
// token-frames.F2. Deltas of one kind are joined for at most 40 ms or 1 KB: a frame is a row of the store.
// token-frames.F3. A call is executed again after a failure or a crash, with a higher `execution`. A reader that sees `begin` with
//   a higher execution discards what it has of that call.

import { systemClock, systemTimers } from "../base/index.ts";
import { stream, type Cost, type Stream } from "../kernel/index.ts";
import type { OperationContext } from "../workflow/index.ts";

/**
 * A part of a model call that a run shows while the call is in progress.
 *
 * @example
 * ```ts
 * import type { TokenFrame } from "reprise/ai";
 * const texts = new Map<string, string>();
 * function show(frame: TokenFrame): void {
 *   if (frame.part === "begin") texts.set(frame.call, "");
 *   if (frame.part === "text") texts.set(frame.call, (texts.get(frame.call) ?? "") + frame.delta);
 * }
 * ```
 */
export type TokenFrame = {
  /** The call, the same for all its executions. */
  call: string;
  /** From 1. On `begin` with a higher one, discard what you have of this call. */
  execution: number;
} & (
  | { part: "begin"; model: string }
  | { part: "text" | "reasoning" | "tool-input"; delta: string }
  | { part: "end"; finish: string; usage: Cost }
  | { part: "failed"; error: string; again: boolean }
);

/**
 * Declares a stream of token frames: `durable(ctx, { stream })` writes them, `run.stream` reads them.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { durable, tokens } from "reprise/ai";
 * import { streamText, type LanguageModel } from "ai";
 * declare const model: LanguageModel;
 * const chat = workflow("chat", { ports: { words: tokens() } }, async (ctx, prompt: string) => {
 *   const ai = durable(ctx, { stream: "words" });
 *   return ai.call(async () => streamText({ model: ai.model(model), prompt }).text);
 * });
 * ```
 */
export function tokens(): Stream<TokenFrame> {
  return stream<TokenFrame>();
}

/** The names of ports that take token frames. */
export type TokenPorts<M> = {
  [K in keyof M]: M[K] extends Stream<infer T> ? ([TokenFrame] extends [T] ? K : never) : never;
}[keyof M] &
  string;

type DeltaPart = "text" | "reasoning" | "tool-input";
/** A frame without the fields that all frames of an execution share. */
type FramePart = TokenFrame extends infer F ? (F extends TokenFrame ? Omit<F, "call" | "execution"> : never) : never;

const JOIN_MS = 40;
const JOIN_LENGTH = 1024;

/** Writes the frames of one execution. Without a stream it does nothing. */
export class FrameWriter {
  readonly call: string;
  readonly #emit: ((frame: FramePart) => void) | undefined;
  readonly #startedAt = systemClock.monotonic();
  /** From the start of the execution to its first delta. */
  firstDeltaMs: number | undefined;
  #part: DeltaPart = "text";
  #joined = "";
  #cancelTimer: (() => void) | undefined;

  constructor(op: OperationContext<any>, port: string | undefined) {
    this.call = op.idempotencyKey.slice(0, 16);
    const { emit } = op as { emit: (name: string, frame: unknown) => void };
    const shared = { call: this.call, execution: op.execution };
    if (port !== undefined) this.#emit = (frame) => emit(port, { ...shared, ...frame });
  }

  /** token-frames.F2 */
  delta(part: DeltaPart, delta: string): void {
    if (delta === "") return;
    this.firstDeltaMs ??= systemClock.monotonic() - this.#startedAt;
    if (this.#emit === undefined) return;
    if (part !== this.#part) this.#flush();
    this.#part = part;
    this.#joined += delta;
    if (this.#joined.length >= JOIN_LENGTH) this.#flush();
    else this.#cancelTimer ??= systemTimers.set(JOIN_MS, () => this.#flush(), { ref: false });
  }

  write(frame: FramePart): void {
    this.#flush();
    this.#emit?.(frame);
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#joined === "") return;
    this.#emit?.({ part: this.#part, delta: this.#joined });
    this.#joined = "";
  }
}
