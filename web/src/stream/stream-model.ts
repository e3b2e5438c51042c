// Stream model: the text or values of a stream as its frames arrive. Pure: a page folds frames into it.
//
// stream-model.S1. A higher execution of a step discards what lower executions of that step emitted; the loss is kept as a note.
// stream-model.S2. The model is bounded: old chunks are dropped and counted, never the newest ones.
// stream-model.S3. A frame at or below the offset that was read is ignored: a resumed connection repeats nothing.

import { preview } from "../graph/preview.ts";

/** A frame of a stream on the wire. */
export interface StreamFrame {
  readonly offset: number;
  readonly value?: unknown;
  readonly step?: string;
  readonly execution?: number;
  readonly reset?: { readonly step: string; readonly execution: number };
}

export interface Chunk {
  readonly offset: number;
  readonly text: string;
  readonly isText: boolean;
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
}

export interface StreamModel {
  readonly offset: number;
  readonly chunks: readonly Chunk[];
  readonly discarded: readonly Discarded[];
  /** Chunks that were dropped because the model is bounded. */
  readonly dropped: number;
  readonly chars: number;
}

export const EMPTY_STREAM: StreamModel = { offset: 0, chunks: [], discarded: [], dropped: 0, chars: 0 };

const MAX_CHUNKS = 5000;
const MAX_CHARS = 400_000;
const MAX_CHUNK = 20_000;

export function withFrames(model: StreamModel, frames: readonly StreamFrame[]): StreamModel {
  let { offset, discarded, dropped, chars } = model;
  let chunks = [...model.chunks];
  const discard = (step: string, execution: number): void => {
    const isVoid = (chunk: Chunk): boolean => chunk.step === step && chunk.execution < execution;
    const gone = chunks.filter(isVoid);
    const last = gone.at(-1);
    if (last === undefined) return;
    chunks = chunks.filter((chunk) => !isVoid(chunk));
    chars -= gone.reduce((sum, { text }) => sum + text.length, 0);
    discarded = [...discarded, { step, execution: last.execution, chunks: gone.length, repeatedBy: execution }].slice(
      -20,
    );
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
    const text = textOf(frame.value);
    chunks.push({ offset, text, isText: typeof frame.value === "string", step: frame.step, execution });
    chars += text.length;
  }
  let first = 0;
  while (chunks.length - first > MAX_CHUNKS || (chars > MAX_CHARS && chunks.length - first > 1)) {
    chars -= chunks[first]!.text.length;
    first += 1;
  }
  dropped += first;
  return { offset, chunks: first === 0 ? chunks : chunks.slice(first), discarded, dropped, chars };
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
  readonly isText: boolean;
  readonly text: string;
  readonly values: readonly Chunk[];
}

export function passagesOf(chunks: readonly Chunk[]): readonly Passage[] {
  const passages: { step: string | undefined; execution: number; first: number; isText: boolean; parts: Chunk[] }[] =
    [];
  for (const chunk of chunks) {
    const last = passages.at(-1);
    if (last !== undefined && last.step === chunk.step && last.isText === chunk.isText) last.parts.push(chunk);
    else
      passages.push({
        step: chunk.step,
        execution: chunk.execution,
        first: chunk.offset,
        isText: chunk.isText,
        parts: [chunk],
      });
  }
  return passages.map(({ parts, ...passage }) => ({
    ...passage,
    text: passage.isText ? parts.map(({ text }) => text).join("") : "",
    values: passage.isText ? [] : parts,
  }));
}

/** Frames per second over the last seconds. `arrivals` are times in ms, oldest first. */
export function rateOf(arrivals: readonly number[], now: number, windowMs = 5000): number {
  const recent = arrivals.filter((at) => at > now - windowMs);
  const [first] = recent;
  if (first === undefined || recent.length < 2) return 0;
  return (recent.length - 1) / Math.max(0.2, (now - first) / 1000);
}
