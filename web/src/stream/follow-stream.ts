// Follow stream: reads a stream of a run over Server-Sent Events, and comes back behind the last offset after a lost connection.
//
// follow-stream.F1. Frames are handed over in batches, at most 20 times per second: a fast stream does not block the page.

import { apiUrl, Problem } from "../api.ts";
import { createEventParser, type ServerEvent } from "../event-parser.ts";
import type { StreamFrame } from "./stream-model.ts";

export type StreamState = "connecting" | "live" | "ended" | "lost" | "refused";

interface FollowOptions {
  readonly run: string;
  readonly name: string;
  readonly onFrames: (frames: readonly StreamFrame[]) => void;
  readonly onState: (state: StreamState, detail: string) => void;
  readonly signal: AbortSignal;
}

const BATCH_MS = 50;
const LONGEST_RETRY_MS = 8000;

/** Runs until the stream ends or `signal` aborts. */
export async function followStream(options: FollowOptions): Promise<void> {
  const { signal, onState } = options;
  let offset = 0;
  for (let failures = 0; !signal.aborted;) {
    onState("connecting", "");
    try {
      const before = offset;
      const end = await readOnce(options, offset, (next) => (offset = next));
      if (end !== undefined) return onState("ended", end);
      failures = offset > before ? 0 : failures + 1;
    } catch (thrown) {
      if (signal.aborted) return;
      if (thrown instanceof Problem && thrown.status >= 400 && thrown.status < 500 && thrown.status !== 429)
        return onState("refused", thrown.detail);
      failures += 1;
    }
    onState("lost", "");
    await pause(Math.min(LONGEST_RETRY_MS, 250 * 2 ** failures), signal);
  }
}

async function readOnce(
  { run, name, onFrames, onState, signal }: FollowOptions,
  after: number,
  onOffset: (offset: number) => void,
): Promise<string | undefined> {
  const response = await fetch(
    apiUrl(`/v1/runs/${encodeURIComponent(run)}/streams/${encodeURIComponent(name)}`, { after }),
    { headers: { accept: "text/event-stream" }, credentials: "same-origin", cache: "no-store", signal },
  );
  if (!response.ok || response.body === null) {
    const body = (await response.json().catch(() => ({}))) as object;
    throw new Problem({ ...body, status: response.status });
  }
  onState("live", "");
  let end: string | undefined;
  let frames: StreamFrame[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const [batch] = [frames];
    frames = [];
    if (batch.length > 0) onFrames(batch);
  };
  const parser = createEventParser((event) => {
    if (event.event === "end") {
      end = (JSON.parse(event.data) as { status?: string }).status ?? "ended";
      return;
    }
    const frame = frameOf(event);
    if (frame === undefined) return;
    frames.push(frame);
    onOffset(frame.offset);
    timer ??= setTimeout(flush, BATCH_MS);
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return end;
      parser.push(value);
      if (end !== undefined) return end;
    }
  } finally {
    flush();
    void reader.cancel().catch(() => {});
  }
}

function frameOf({ event, data, id }: ServerEvent): StreamFrame | undefined {
  const offset = Number(id);
  if (!Number.isSafeInteger(offset)) return undefined;
  const body = JSON.parse(data) as { value?: unknown; step?: string; execution?: number };
  if (event === "reset") return { offset, reset: { step: body.step ?? "", execution: body.execution ?? 1 } };
  return { offset, ...body };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
