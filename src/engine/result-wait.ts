// ResultWait: one caller that waits for the result of a run. A process may wait for very many runs: a wait that has neither
// a timeout nor a signal is this object and its promise.

import { CancelledError, RepriseError, type Timers } from "../base/index.ts";
import { decodeData, type Redaction } from "../kernel/index.ts";
import { onAbort } from "./abort.ts";
import type { ResultWaiter, ResultWaiters, RunEnding } from "./result-waiters.ts";
import { failureOf, stopOf } from "./run-info.ts";

interface ResultWaitHost {
  readonly timers: Timers;
  readonly waiters: ResultWaiters;
  readonly redaction: Redaction;
}

export class ResultWait implements ResultWaiter {
  readonly #host: ResultWaitHost;
  readonly #id: string;
  readonly #resolve: (result: unknown) => void;
  readonly #reject: (error: unknown) => void;
  #removeAbort: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(host: ResultWaitHost, id: string, resolve: (result: unknown) => void, reject: (error: unknown) => void) {
    this.#host = host;
    this.#id = id;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(timeoutMs: number | undefined, signal: AbortSignal | undefined): void {
    const { timers, waiters } = this.#host;
    waiters.add(this.#id, this);
    if (signal !== undefined) this.#removeAbort = onAbort(signal, (reason) => this.fail(reason));
    if (timeoutMs !== undefined) this.#cancelTimer = timers.set(timeoutMs, () => this.fail(this.#timedOut(timeoutMs)));
  }

  settle(ending: RunEnding | RepriseError | undefined): void {
    if (ending instanceof RepriseError) return this.fail(ending);
    if (ending === undefined) return this.fail(this.#closed());
    this.#release();
    try {
      this.#resolve(this.#resultOf(ending));
    } catch (error) {
      this.#reject(error);
    }
  }

  fail(error: unknown): void {
    this.#release();
    this.#reject(error);
  }

  #release(): void {
    this.#host.waiters.remove(this.#id, this);
    this.#cancelTimer?.();
    this.#removeAbort?.();
  }

  /** The output of the run; throws what it failed with. */
  #resultOf({ record, last }: RunEnding): unknown {
    const { redaction } = this.#host;
    const stopped = stopOf(record);
    if (stopped !== undefined) throw redaction.error(stopped);
    if (last?.type === "RunCompleted") return decodeData(last.type, last.data).output;
    if (last === undefined && record.status === "cancelled")
      throw new CancelledError(`Run ${this.#id} was cancelled before it was started.`);
    if (last?.type === "RunCancelled") throw new CancelledError(cancelledText(this.#id, last.data));
    const cause = failureOf(last);
    const message = `Run ${this.#id} failed: ${cause?.message ?? "no error was recorded"}`;
    throw redaction.error(new RepriseError("RUN_FAILED", message, { cause }));
  }

  #timedOut(timeoutMs: number): RepriseError {
    return new RepriseError(
      "RESULT_TIMEOUT",
      `Run ${this.#id} has not ended within ${timeoutMs} ms. The run is still in progress; call result() again.`,
    );
  }

  #closed(): RepriseError {
    return new RepriseError(
      "ENGINE_CLOSED",
      `The engine or client was closed before run ${this.#id} ended. Create a new one and call result() again.`,
    );
  }
}

function cancelledText(id: string, data: string): string {
  const { reason, terminated } = decodeData("RunCancelled", data);
  const what = `Run ${id} was ${terminated === true ? "terminated" : "cancelled"}`;
  return reason === undefined ? `${what}.` : `${what}: ${reason}`;
}
