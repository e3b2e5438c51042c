// OfferJob: an item that a worker of this site holds and that peers execute, from its offer until its end is written.

import { decode, RepriseError, RetryLaterError } from "../../base/index.ts";
import type { RemoteCall } from "../../worker/index.ts";
import type { Offer } from "./offer.ts";
import type { ExecutedStep } from "./step-statement.ts";

/** Who executes the tasks of a label. */
export interface WorkTarget {
  readonly peers: readonly string[];
  /** 2: two peers execute each task, and their results are compared. */
  readonly redundancy: 1 | 2;
}

export interface PostedEnd {
  readonly peer: string;
  readonly statement: string;
  readonly executed: ExecutedStep;
  readonly step: string;
  readonly result: string | undefined;
}

/** How the store answered the write that ended the item, or returned it to the queue. */
export type Written = "committed" | "returned" | "lost";

export interface OfferJob {
  readonly call: RemoteCall;
  readonly target: WorkTarget;
  readonly input: string | undefined;
  readonly shares: Set<Share>;
  readonly ends: PostedEnd[];
  resolve(value: unknown): void;
  reject(error: unknown): void;
  /** Resolves when the store has answered the write that ends the item or returns it. */
  readonly written: Promise<Written>;
  onWritten(how: Written): void;
  isSettled: boolean;
}

/** An offer that a peer has claimed. */
export interface Share {
  readonly id: string;
  readonly peer: string;
  readonly job: OfferJob;
  /** Monotonic time. */
  until: number;
}

export function offerOf({ id, job }: Share): Offer {
  const { item, context, epoch, timeoutMs } = job.call;
  return {
    offer: id,
    run: item.runId,
    generation: item.generation,
    command: item.item,
    epoch,
    task: item.name,
    attempt: item.attempt,
    execution: item.execution,
    idempotencyKey: context.idempotencyKey,
    ...(job.input !== undefined && { input: job.input }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

/** The value that the function returned, or the error that it threw. */
export function decodeEnd(
  peer: string,
  job: OfferJob,
  result: string | undefined,
  error: string | undefined,
  retryMs?: number,
) {
  try {
    if (error === undefined) return result === undefined ? undefined : decode(result);
    const thrown = decode(error);
    return retryMs === undefined ? thrown : new RetryLaterError(retryMs, (thrown as Error).message);
  } catch (damage) {
    throw refusedEnd(peer, job, `its text cannot be decoded: ${(damage as Error).message}`);
  }
}

export function refusedEnd(peer: string, { call }: OfferJob, why: string): RepriseError {
  const { item, runId } = call.item;
  return new RepriseError("RESULT_REFUSED", `The end of ${item} of run ${runId} that ${peer} sent is refused: ${why}.`);
}
