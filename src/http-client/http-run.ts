// HttpRun: the handle of one run over HTTP.
//
// http-run.R1. A method returns and throws what the method of a handle in the server's process does.
// http-run.R2. `result` and `stream` outlive the server: while it restarts they wait, and continue where they were.

import { checkOptionNames, checkRunId, RepriseError, toMs, type Duration } from "../base/portable.ts";
import type { EXACT_READS } from "../contract/index.ts";
import type { BudgetAnswerOptions, Run, StreamChunk, StreamOptions } from "../engine/index.ts";
import { readEvents } from "./read-events.ts";
import { fromWire, toWire, type Transport } from "./transport.ts";

type ExactMethod = (typeof EXACT_READS)[number];
interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

const TAGGED = { payloads: "tagged" } as const;
/** Seconds that the server waits before it answers that the run has not ended. */
const POLL_SECONDS = 20;

export class HttpRun implements Run<any> {
  readonly id: string;
  readonly #transport: Transport;

  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.id = checkRunId(id);
  }

  // ── the end of the run ──

  async result(options: { readonly timeout?: Duration; readonly signal?: AbortSignal } = {}): Promise<any> {
    checkOptionNames(options, ["signal", "timeout"], "result");
    const { signal } = options;
    const timeoutMs = options.timeout === undefined ? undefined : toMs(options.timeout, "result: timeout");
    const { ports } = this.#transport;
    const until = timeoutMs === undefined ? Number.POSITIVE_INFINITY : ports.now() + timeoutMs;
    for (;;) {
      signal?.throwIfAborted();
      const leftMs = until - ports.now();
      const wait = Math.min(POLL_SECONDS, Math.max(0, Math.ceil(leftMs / 1_000)));
      const [limit, release] = this.#limited(leftMs, signal);
      try {
        const path = ["runs", this.id, "result"];
        const { status, body } = await this.#transport.json({ path, query: { wait, ...TAGGED }, signal: limit });
        if (status === 200) return fromWire(body.output);
      } catch (error) {
        signal?.throwIfAborted();
        if (error !== TIME_IS_OVER) throw error;
      } finally {
        release();
      }
      if (ports.now() >= until) throw resultTimeout(this.id, timeoutMs!);
    }
  }

  /** A signal that also aborts after a time, and a function that ends it. */
  #limited(ms: number, signal: AbortSignal | undefined): readonly [AbortSignal | undefined, () => void] {
    if (!Number.isFinite(ms)) return [signal, () => undefined];
    const [limit, released] = [new AbortController(), new AbortController()];
    void this.#transport.ports.wait(Math.max(0, ms), released.signal).then(() => {
      if (!released.signal.aborted) limit.abort(TIME_IS_OVER);
    });
    return [signal === undefined ? limit.signal : AbortSignal.any([limit.signal, signal]), () => released.abort()];
  }

  // ── messages ──

  async signal(name: string, ...args: readonly unknown[]): Promise<void> {
    const [value, options = {}] = args as [unknown, { dedupId?: string; beforeStart?: boolean; signal?: AbortSignal }?];
    checkOptionNames(options, ["beforeStart", "dedupId", "signal"], `signal ${name}`);
    refuseEarly(options);
    const { dedupId = this.#transport.ports.newId(), signal } = options;
    await this.#post(["signals", name], { value: toWire(value), dedupId }, { signal }, TAGGED);
  }

  async resolve(name: string, ...args: readonly unknown[]): Promise<void> {
    const [value, options = {}] = args as [unknown, SettleOptions?];
    await this.#settle(name, { value: toWire(value) }, options, `resolve ${name}`);
  }

  async reject(name: string, error: Error, options: SettleOptions = {}): Promise<void> {
    await this.#settle(name, { reject: error.message, error: toWire(error) }, options, `reject ${name}`);
  }

  async #settle(name: string, body: object, options: SettleOptions, what: string): Promise<void> {
    checkOptionNames(options, ["beforeStart", "by", "key", "reason", "signal"], what);
    refuseEarly(options);
    const { by, key, reason, signal } = options;
    const path = key === undefined ? ["promises", name] : ["promises", name, key];
    const decision = { ...body, ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) };
    await this.#post(path, decision, { signal }, TAGGED);
  }

  async query(name: string, ...args: readonly unknown[]): Promise<never> {
    const [given, options = {}] = args as [unknown, Abortable?];
    checkOptionNames(options, ["signal"], `query ${name}`);
    const { result } = await this.#post(["queries", name], { args: toWire(given) }, options, TAGGED);
    return fromWire(result) as never;
  }

  async update(name: string, ...args: readonly unknown[]): Promise<never> {
    const [given, options = {}] = args as [unknown, { dedupId?: string; signal?: AbortSignal }?];
    checkOptionNames(options, ["dedupId", "signal"], `update ${name}`);
    const { dedupId = this.#transport.ports.newId() } = options;
    const { result } = await this.#post(["updates", name], { args: toWire(given), dedupId }, options, TAGGED);
    return fromWire(result) as never;
  }

  stream(name: string, options: StreamOptions = {}): AsyncGenerator<StreamChunk<never>, void, undefined> {
    checkOptionNames(options, ["after", "signal"], `stream ${name}`);
    const { after = 0, signal } = options;
    if (!Number.isSafeInteger(after) || after < 0)
      throw new RepriseError(
        "BAD_OPTIONS",
        `stream: expected an offset of 0 or more as \`after\`, got ${String(after)}. Pass the offset of the last chunk you have read.`,
      );
    return this.#frames(name, after, signal);
  }

  /** http-run.R2 */
  async *#frames(
    name: string,
    from: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<StreamChunk<never>, void, undefined> {
    const left = new AbortController();
    const ended = signal === undefined ? left.signal : AbortSignal.any([left.signal, signal]);
    try {
      for (let after = from; ;) {
        const response = await this.#transport.send({
          path: ["runs", this.id, "streams", name],
          query: { after, ...TAGGED },
          headers: { accept: "text/event-stream" },
          signal: ended,
        });
        this.#transport.checkType(response, "text/event-stream");
        try {
          for await (const { id, event, data } of readEvents(response)) {
            if (event === "end") return;
            const offset = Number(id);
            if (!(offset > after)) continue;
            after = offset;
            yield frameOf(offset, event, data);
          }
        } catch (error) {
          // The connection broke: the next one continues behind the last frame.
          if (!isBroken(error)) throw error;
        }
        signal?.throwIfAborted();
        this.#transport.checkOpen();
        await this.#transport.pause(RECONNECT_MS, signal);
      }
    } finally {
      left.abort();
    }
  }

  // ── control ──

  async cancel(reason?: string, options: Abortable = {}): Promise<void> {
    await this.#post(["cancel"], reasonOf(reason), options);
  }

  async terminate(reason?: string, options: Abortable = {}): Promise<void> {
    await this.#post(["terminate"], reasonOf(reason), options);
  }

  budget(options?: Abortable): Promise<any> {
    return this.#exact("budget", [], options);
  }

  async raise(add: object, { signal, ...options }: BudgetAnswerOptions = {}): Promise<void> {
    await this.#post(["raise"], { add, ...options }, { signal }, {}, false);
  }

  async declineBudget({ signal, ...options }: BudgetAnswerOptions = {}): Promise<void> {
    await this.#post(["decline-budget"], options, { signal }, {}, false);
  }

  async pause(options: Abortable = {}): Promise<void> {
    await this.#post(["pause"], {}, options);
  }

  async resume(options: Abortable = {}): Promise<void> {
    await this.#post(["resume"], {}, options, {}, false);
  }

  async retry(options: Abortable = {}): Promise<void> {
    await this.#post(["retry"], {}, options, {}, false);
  }

  async migrate({ signal, ...options }: { version: number; dryRun?: boolean; signal?: AbortSignal }): Promise<void> {
    await this.#post(["migrate"], options, { signal }, {}, false);
  }

  async delete(options: Abortable = {}): Promise<{ readonly runs: number }> {
    return (await this.#post(["delete"], {}, options, {}, false)) as { readonly runs: number };
  }

  async fork(options: object): Promise<any> {
    const { signal, patch, answers, deadline, id = this.#transport.ports.newId(), ...rest } = options as ForkOptions;
    const values = (one: Readonly<Record<string, unknown>>): object =>
      Object.fromEntries(Object.entries(one).map(([name, value]) => [name, toWire(value)]));
    const body = {
      ...rest,
      id,
      ...(patch !== undefined && { patch: values(patch) }),
      ...(answers !== undefined && { answers: values(answers) }),
      ...(deadline !== undefined && { deadline: durationText(deadline) }),
    };
    await this.#post(["fork"], body, { signal }, TAGGED);
    return new HttpRun(this.#transport, id);
  }

  // ── reads ──

  info(options?: Abortable): Promise<any> {
    return this.#exact("info", [], options);
  }

  scheduler(options?: Abortable): Promise<any> {
    return this.#exact("scheduler", [], options);
  }

  journal(options?: Abortable): AsyncIterable<any> {
    return this.#exactList("journal", options);
  }

  attempts(options?: Abortable): AsyncIterable<any> {
    return this.#exactList("attempts", options);
  }

  checkpoints(options?: Abortable): AsyncIterable<any> {
    return this.#exactList("checkpoints", options);
  }

  checkpoint(at: unknown, options?: Abortable): Promise<any> {
    return this.#exact("checkpoint", [at], options);
  }

  stateAt(at: unknown, options?: Abortable): Promise<any> {
    return this.#exact("stateAt", [at], options);
  }

  diff(other: { readonly id: string }, options: Abortable & { readonly limit?: number } = {}): Promise<any> {
    const { signal, ...rest } = options;
    return this.#exact("diff", [other.id, rest], { signal });
  }

  replay({ signal, ...options }: Abortable = {}): Promise<any> {
    return this.#exact("replay", [options], { signal });
  }

  verify({ signal, ...options }: Abortable = {}): Promise<any> {
    return this.#exact("verify", [options], { signal });
  }

  async #exact(method: ExactMethod, args: readonly unknown[], { signal }: Abortable = {}): Promise<unknown> {
    const body = { method, args: args.map(toWire) };
    return fromWire((await this.#post(["exact"], body, { signal }, TAGGED)).result);
  }

  async *#exactList(method: ExactMethod, given: Abortable = {}): AsyncGenerator<unknown, void, undefined> {
    const { signal, ...options } = given;
    for (let skip: number | undefined = 0; skip !== undefined;) {
      const body: object = { method, args: [toWire(options)], skip };
      const page = await this.#post(["exact"], body, { signal }, TAGGED);
      for (const item of page.result as readonly unknown[]) {
        signal?.throwIfAborted();
        yield fromWire(item);
      }
      skip = page.next;
    }
  }

  async #post(
    path: readonly string[],
    body: object,
    { signal }: Abortable,
    query: Readonly<Record<string, string>> = {},
    repeats = true,
  ): Promise<any> {
    const request = { method: "POST", path: ["runs", this.id, ...path], query, body, signal, repeats } as const;
    return (await this.#transport.json(request)).body ?? {};
  }
}

interface SettleOptions extends Abortable {
  readonly beforeStart?: boolean;
  readonly by?: string;
  readonly key?: string;
  readonly reason?: string;
}

interface ForkOptions extends Abortable {
  readonly id?: string;
  readonly patch?: Readonly<Record<string, unknown>>;
  readonly answers?: Readonly<Record<string, unknown>>;
  readonly deadline?: Duration;
}

const RECONNECT_MS = 100;
const TIME_IS_OVER = new DOMException("The time of the wait is over.", "TimeoutError");

/** A read of a broken connection: `TypeError` in Node and Chrome, a DOMException elsewhere. */
function isBroken(error: unknown): boolean {
  return !(error instanceof RepriseError) && error instanceof Error && error.name !== "AbortError";
}

function frameOf(offset: number, event: string, data: string): StreamChunk<never> {
  const parsed = JSON.parse(data) as { value?: unknown; step?: string; execution?: number };
  const { step, execution } = parsed;
  if (event === "reset") return { offset, reset: { step: step!, execution: execution! } };
  const value = fromWire(parsed.value) as never;
  return step === undefined ? { offset, value } : { offset, value, step, execution: execution! };
}

function reasonOf(reason: string | undefined): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}

function refuseEarly({ beforeStart }: { readonly beforeStart?: boolean }): void {
  if (beforeStart === true)
    throw new RepriseError(
      "USAGE",
      "beforeStart is not available over HTTP. Pass `signals` to client.start, or send the message from a process with the store.",
    );
}

/** As the API takes it: text with a unit. */
export function durationText(duration: Duration): string {
  return typeof duration === "number" ? `${duration} ms` : duration;
}

function resultTimeout(id: string, ms: number): RepriseError {
  return new RepriseError(
    "RESULT_TIMEOUT",
    `Run ${id} has not ended within ${ms} ms. The run is still in progress; call result() again.`,
  );
}
