// Extension: what a room above the server adds to it: requests of another protocol, behind the same gate as those of the API.
//
// extension.E1. An extension reads and changes runs by calling operations of the table for the caller of the request (call-operation.C1). It
//   has neither the store nor the engine, so it can allow nothing that the operations do not.

import { json, operation, record, type Role } from "../contract/index.ts";
import type { Call, Caller, ServerHost } from "./host.ts";
import { decode } from "../base/index.ts";
import { readFrames } from "./mcp/stream-page.ts";
import { payloadToWire } from "./wire-payload.ts";
import { getLiveReads } from "./live/hub-of.ts";
import type { OperationInput, Operations } from "./mcp/call-operation.ts";
import type { ImplementedOperation } from "./operations.ts";

/** What a package adds to a server, such as `a2a` of `reprise/a2a`. */
export interface ServerExtension {
  readonly operations: readonly ExtensionOperation[];
}

/** One request that an extension answers. */
export interface ExtensionOperation {
  /** Its name in the audit, and in the OpenAPI document. */
  readonly id: string;
  readonly method: "GET" | "POST";
  /** Below the path of the server: `/a2a`. */
  readonly path: `/${string}`;
  /** The least role of a caller; `public`: no token. */
  readonly role: Role | "public";
  /** One sentence: what it does. */
  readonly summary: string;
  readonly handle: (call: ExtensionCall) => Promise<Response>;
}

/** A request to an extension. */
export interface ExtensionCall {
  readonly request: Request;
  /** The body as JSON. */
  readonly body: unknown;
  readonly caller: Caller | undefined;
  /** The address of the server, without a slash at its end: `https://runs.example.org`. */
  readonly address: string;
  /** Aborts when the client disconnects, its token is revoked, or the server closes. */
  readonly signal: AbortSignal;
  /** extension.E1. Calls an operation by its `operationId`, for the caller; the answer as JSON. */
  readonly call: (operation: string, input: OperationInput) => Promise<unknown>;
  /** Frames of a stream of a run behind an offset; needs what `readStream` needs. */
  readonly stream: (run: string, name: string, after: number) => Promise<ExtensionFrames>;
  /** Logs an error whose text no client may read. */
  readonly report: (error: unknown) => void;
  /** Yields at once, and then whenever the run may have changed, until the signal aborts. */
  readonly changes: (run: string) => AsyncGenerator<void, void, undefined>;
}

/** Frames of a stream, in their order. */
export interface ExtensionFrames {
  /** A frame with `reset` voids the values of its step before it. */
  readonly frames: readonly { readonly step: string; readonly reset: boolean; readonly value: unknown }[];
  /** The offset of the last one. */
  readonly next: number;
  /** There are more behind it. */
  readonly more: boolean;
}

const MAX_BYTES = 8 * 1024 * 1024;

export function extensionOperation(
  { id, method, path, role, summary, handle }: ExtensionOperation,
  operations: () => Operations,
): ImplementedOperation {
  return {
    id,
    operation: operation<any, any, any>({
      role,
      method,
      path,
      group: "Extensions",
      scope: "filtered",
      summary,
      ...(method === "POST" && { body: json(), maxBytes: MAX_BYTES }),
      answer: record(json()),
      negotiates: true,
      waits: true,
      relays: true,
      example: {},
    }),
    handler: (call) => handle(extensionCall(call, operations())),
  };
}

/** A public request calls operations as a caller without any right. */
const WITHOUT_RIGHTS: Caller = { name: "anonymous", role: "none" as Role };

function extensionCall({ host, request, url, body, caller, signal }: Call, operations: Operations): ExtensionCall {
  return {
    request,
    body,
    caller,
    address: `${host.access.guard.publicOrigin() ?? url.origin}${host.basePath}`,
    signal,
    call: (operationId, input) => operations.call(operationId, caller ?? WITHOUT_RIGHTS, input, signal),
    stream: async (run, name, after) => {
      const page = await readFrames(host, caller ?? WITHOUT_RIGHTS, { run, stream: name, after });
      return {
        frames: page.chunks.map(({ step = "", reset = false, data }) => ({
          step,
          reset,
          value: reset ? undefined : payloadToWire(decode(data), "plain"),
        })),
        next: page.next,
        more: page.more,
      };
    },
    report: (error) => host.logger.error(`server: a request failed: ${String(error)}`, { error }),
    changes: (run) => changesOf(host, run, signal),
  };
}

/** Changes that no notice told of, such as of the next generation of a run, are seen after this time. */
const POLL_MS = 2_000;
/** A run that changes all the time is read no more often. */
const REST_MS = 50;

async function* changesOf(host: ServerHost, id: string, signal: AbortSignal): AsyncGenerator<void, void, undefined> {
  const run = (await host.store.findRun(id))?.run;
  const waiter = new Waiter(host, signal);
  // Before the first read of the consumer, so that no change is missed between a read and a wait.
  const stop = getLiveReads(host).listen({
    onRun: (changed) => {
      if (changed === run) waiter.notice();
    },
    onWritten: () => undefined,
    onOthers: (runs) => {
      if (run === undefined || (runs?.has(run) ?? true)) waiter.notice();
    },
  });
  try {
    while (!signal.aborted) {
      yield;
      await waiter.pause(REST_MS);
      await waiter.next(POLL_MS);
    }
  } finally {
    stop();
  }
}

class Waiter {
  readonly #host: ServerHost;
  readonly #signal: AbortSignal;
  #hasNotice = false;
  #wake: (() => void) | undefined;

  constructor(host: ServerHost, signal: AbortSignal) {
    this.#host = host;
    this.#signal = signal;
  }

  notice(): void {
    this.#hasNotice = true;
    this.#wake?.();
  }

  /** Resolves with a notice, after the time, or when the signal aborts. */
  async next(ms: number): Promise<void> {
    if (!this.#hasNotice) await this.#sleep(ms, true);
    this.#hasNotice = false;
  }

  pause(ms: number): Promise<void> {
    return this.#sleep(ms, false);
  }

  #sleep(ms: number, wakesByNotice: boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        this.#wake = undefined;
        this.#signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = this.#host.timers.set(ms, end, { ref: false });
      if (wakesByNotice) this.#wake = end;
      this.#signal.addEventListener("abort", end, { once: true });
      if (this.#signal.aborted) end();
    });
  }
}
