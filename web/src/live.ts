// Live: the one connection of this tab to `/v1/events`. It resumes behind the last event that it saw, and says when the page is stale.
//
// live.L1. A page is live only while the stream is open. Without it the page keeps its data, shows when they were true, and offers no
//   action.
// live.L2. A hidden tab holds no connection: browsers allow six to one server, and a seventh tab would wait for ever.

import { computed, signal } from "@preact/signals";
import { apiUrl, Problem, watchReachability } from "./api.ts";
import { serverNow } from "./clock.ts";
import { createEventParser, type ServerEvent } from "./event-parser.ts";

export interface LiveEvent {
  readonly kind: "run" | "promise" | "queue" | "worker" | "schedule" | "reset" | (string & {});
  readonly data: Readonly<Record<string, unknown>>;
}

interface LiveState {
  readonly state: "connecting" | "live" | "stale";
  /** When the data of the page were true, as ms of the server. */
  readonly asOf: number;
  readonly problem?: Problem;
  /** When the next try starts, as ms of this machine. */
  readonly retryAt?: number;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
/** The server sends a comment every 15 s. */
const SILENCE_MS = 40_000;

export const live = signal<LiveState>({ state: "connecting", asOf: serverNow() });
export const isStale = computed(() => live.value.state === "stale");

type Listener = (event: LiveEvent) => void;
const listeners = new Set<Listener>();

/** Calls `listener` for every change in the store; the answer ends that. After a gap that no cursor covers, the event is `reset`. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let cursor: string | undefined;
let connection: AbortController | undefined;
let retries = 0;
let retryTimer: ReturnType<typeof setTimeout> | undefined;

export function startLive(): void {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) disconnect();
    else connect();
  });
  watchReachability((problem) => {
    if (problem !== undefined && live.peek().state === "live") connect();
  });
  if (!document.hidden) connect();
}

/** Tries again at once. */
export function retryNow(): void {
  connect();
}

function disconnect(): void {
  clearTimeout(retryTimer);
  connection?.abort();
  connection = undefined;
}

function connect(): void {
  disconnect();
  const own = new AbortController();
  connection = own;
  void follow(own).then(
    () => lost(own, undefined),
    (thrown: unknown) => lost(own, thrown instanceof Problem ? thrown : undefined),
  );
}

function lost(own: AbortController, problem: Problem | undefined): void {
  if (connection !== own || own.signal.aborted) return;
  connection = undefined;
  const delay = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** retries);
  // A stream that ended in order (a restart, a reader that was too slow) comes back at once: that is no outage yet.
  const ended = problem === undefined && retries === 0;
  retries += 1;
  if (!ended) {
    live.value = {
      state: "stale",
      asOf: live.peek().asOf,
      problem: problem ?? new Problem({ status: 0, code: "SERVER_UNREACHABLE", detail: "The server does not answer." }),
      retryAt: Date.now() + delay,
    };
  }
  retryTimer = setTimeout(connect, ended ? 0 : delay);
}

async function follow(own: AbortController): Promise<void> {
  const response = await fetch(apiUrl("/v1/events"), {
    headers: { accept: "text/event-stream", ...(cursor !== undefined && { "last-event-id": cursor }) },
    credentials: "same-origin",
    cache: "no-store",
    signal: own.signal,
  });
  if (!response.ok || response.body === null) {
    const body = (await response.json().catch(() => ({}))) as object;
    throw new Problem({ ...body, status: response.status });
  }
  const wasStale = live.peek().state === "stale";
  const hadCursor = cursor !== undefined;
  live.value = { state: "live", asOf: serverNow() };
  // What changed during the gap arrives by the cursor; without one the pages read everything again.
  if (wasStale && !hadCursor) emit({ kind: "reset", data: {} });
  else if (wasStale) emit({ kind: "resumed", data: {} });
  const parser = createEventParser(take);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let silence = setTimeout(connect, SILENCE_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      retries = 0;
      clearTimeout(silence);
      silence = setTimeout(connect, SILENCE_MS);
      live.value = { state: "live", asOf: serverNow() };
      parser.push(value);
    }
  } finally {
    clearTimeout(silence);
  }
}

function take(event: ServerEvent): void {
  if (event.id !== undefined) cursor = event.id;
  let data: Readonly<Record<string, unknown>> = {};
  try {
    data = JSON.parse(event.data) as typeof data;
  } catch {
    // An event without JSON, such as `reset`, still says its kind.
  }
  emit({ kind: event.event, data });
}

function emit(event: LiveEvent): void {
  for (const listener of listeners) listener(event);
}
