// Stream model: the text or values of a stream as its frames arrive. Pure: a page folds frames into it.
//
// stream-model.S1. A higher execution of a step discards what lower executions of that step emitted; the loss is kept as a note.
// stream-model.S2. The model is bounded: old chunks are dropped and counted, never the newest ones.
// stream-model.S3. A frame at or below the offset that was read is ignored: a resumed connection repeats nothing.
// stream-model.S4. Token frames of a model call (reprise/ai) read as its text. Their `begin`, `end` and `failed` are facts of the call.

import type { CostBody } from "../../../src/contract/run.ts";
import { preview } from "../graph/preview.ts";

/** A frame of a stream on the wire. */
export interface StreamFrame {
  readonly offset: number;
  readonly value?: unknown;
  readonly step?: string;
  readonly execution?: number;
  readonly reset?: { readonly step: string; readonly execution: number };
}

/** `reasoning` and `tool-input` are parts of the answer of a model besides its text. */
export type ChunkKind = "text" | "reasoning" | "tool-input" | "value";

export interface Chunk {
  readonly offset: number;
  readonly text: string;
  readonly kind: ChunkKind;
  readonly step: string | undefined;
  readonly execution: number;
}

export interface Discarded {
  readonly step: string;
  /** The execution that emitted what was discarded. */
  readonly execution: number;
  readonly chunks: number;
  /** The execution that repeats it. */
  readonly repeatedBy: number;
  /** Why it ended, if its frames say so. */
  readonly error?: string;
}

/** A call of a model, as its token frames tell it. */
export interface ModelCall {
  readonly step: string;
  readonly execution: number;
  readonly model: string;
  /** Absent: the answer is not complete. */
  readonly finish?: string;
  readonly usage?: CostBody;
  readonly error?: string;
}

export interface StreamModel {
  readonly offset: number;
  readonly chunks: readonly Chunk[];
  readonly discarded: readonly Discarded[];
  /** stream-model.S4. Without those of discarded executions. */
  readonly calls: readonly ModelCall[];
  /** Chunks that were dropped because the model is bounded. */
  readonly dropped: number;
  readonly chars: number;
}

export const EMPTY_STREAM: StreamModel = { offset: 0, chunks: [], discarded: [], calls: [], dropped: 0, chars: 0 };

const MAX_CHUNKS = 5000;
const MAX_CHARS = 400_000;
const MAX_CHUNK = 20_000;
const MAX_CALLS = 500;

export function withFrames(model: StreamModel, frames: readonly StreamFrame[]): StreamModel {
  let { offset, discarded, dropped, chars } = model;
  let chunks = [...model.chunks];
  let calls = [...model.calls];
  const discard = (step: string, execution: number): void => {
    const isVoid = (one: Chunk | ModelCall): boolean => one.step === step && one.execution < execution;
    const call = calls.findLast(isVoid);
    const gone = chunks.filter(isVoid);
    const last = gone.at(-1) ?? call;
    if (last === undefined) return;
    calls = calls.filter((one) => !isVoid(one));
    chunks = chunks.filter((chunk) => !isVoid(chunk));
    chars -= gone.reduce((sum, { text }) => sum + text.length, 0);
    const why = call?.error === undefined ? {} : { error: call.error };
    const note = { step, execution: last.execution, chunks: gone.length, repeatedBy: execution, ...why };
    discarded = [...discarded, note].slice(-20);
  };
  for (const frame of frames) {
    if (frame.offset <= offset) continue;
    offset = frame.offset;
    if (frame.reset !== undefined) {
      discard(frame.reset.step, frame.reset.execution);
      continue;
    }
    const execution = frame.execution ?? 1;
    if (frame.step !== undefined) discard(frame.step, execution);
    const token = frame.step === undefined ? undefined : tokenFrameOf(frame.value);
    if (token !== undefined && !("delta" in token)) {
      calls = withFacts(calls, { step: frame.step!, execution }, token);
      continue;
    }
    const text = textOf(token === undefined ? frame.value : token.delta);
    const kind = token?.part ?? (typeof frame.value === "string" ? "text" : "value");
    chunks.push({ offset, text, kind, step: frame.step, execution });
    chars += text.length;
  }
  let first = 0;
  while (chunks.length - first > MAX_CHUNKS || (chars > MAX_CHARS && chunks.length - first > 1)) {
    chars -= chunks[first]!.text.length;
    first += 1;
  }
  dropped += first;
  return { offset, chunks: first === 0 ? chunks : chunks.slice(first), discarded, calls, dropped, chars };
}

type Token =
  | { readonly part: "begin"; readonly model: string }
  | { readonly part: "text" | "reasoning" | "tool-input"; readonly delta: string }
  | { readonly part: "end"; readonly finish: string; readonly usage: CostBody }
  | { readonly part: "failed"; readonly error: string };

/** stream-model.S4. Undefined: the value is no token frame. */
function tokenFrameOf(value: unknown): Token | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { call, execution, part, model, delta, finish, usage, error } = value as Readonly<Record<string, unknown>>;
  if (typeof call !== "string" || typeof execution !== "number") return undefined;
  if (part === "begin" && typeof model === "string") return { part, model };
  if ((part === "text" || part === "reasoning" || part === "tool-input") && typeof delta === "string")
    return { part, delta };
  if (part === "end" && typeof finish === "string" && typeof usage === "object" && usage !== null)
    return { part, finish, usage };
  return part === "failed" && typeof error === "string" ? { part, error } : undefined;
}

/** The calls after a frame about one of them. */
function withFacts(
  calls: readonly ModelCall[],
  { step, execution }: Pick<ModelCall, "step" | "execution">,
  token: Exclude<Token, { readonly delta: string }>,
): ModelCall[] {
  const isIt = (call: ModelCall): boolean => call.step === step && call.execution === execution;
  const known = calls.find(isIt) ?? { step, execution, model: "" };
  const facts =
    token.part === "end"
      ? { finish: token.finish, usage: token.usage }
      : token.part === "begin"
        ? { model: token.model }
        : { error: token.error };
  return [...calls.filter((call) => !isIt(call)), { ...known, ...facts }].slice(-MAX_CALLS);
}

/** What the calls cost together; undefined: none has ended. */
export function usageOf(calls: readonly ModelCall[]): CostBody | undefined {
  const ended = calls.flatMap(({ usage }) => (usage === undefined ? [] : [usage]));
  if (ended.length === 0) return undefined;
  const sum = (unit: keyof CostBody): number => ended.reduce((total, usage) => total + (usage[unit] ?? 0), 0);
  return { tokens: sum("tokens"), ...(ended.some(({ usd }) => usd !== undefined) && { usd: sum("usd") }) };
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value.length > MAX_CHUNK ? `${value.slice(0, MAX_CHUNK)}…` : value;
  return preview(value, 2000);
}

/** Chunks of one step that follow one another: a paragraph of text, or a list of values. */
export interface Passage {
  readonly step: string | undefined;
  readonly execution: number;
  readonly first: number;
  readonly kind: ChunkKind;
  readonly text: string;
  readonly values: readonly Chunk[];
}

export function passagesOf(chunks: readonly Chunk[]): readonly Passage[] {
  const passages: { step: string | undefined; execution: number; first: number; kind: ChunkKind; parts: Chunk[] }[] =
    [];
  for (const chunk of chunks) {
    const { offset: first, step, execution, kind } = chunk;
    const last = passages.at(-1);
    if (last !== undefined && last.step === step && last.kind === kind) last.parts.push(chunk);
    else passages.push({ step, execution, first, kind, parts: [chunk] });
  }
  return passages.map(({ parts, ...passage }) => ({
    ...passage,
    text: passage.kind === "value" ? "" : parts.map(({ text }) => text).join(""),
    values: passage.kind === "value" ? parts : [],
  }));
}

/** Frames per second over the last seconds. `arrivals` are times in ms, oldest first. */
export function rateOf(arrivals: readonly number[], now: number, windowMs = 5000): number {
  const recent = arrivals.filter((at) => at > now - windowMs);
  const [first] = recent;
  if (first === undefined || recent.length < 2) return 0;
  return (recent.length - 1) / Math.max(0.2, (now - first) / 1000);
}
