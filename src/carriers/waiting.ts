// Waiting: pauses that a signal ends, and reading a file again until it changes.

import type { CarrierFile, CarrierPorts, GetOptions } from "./carrier.ts";

/** Resolves after `ms`, or as soon as `wake` resolves; rejects with the signal's reason. */
export async function pause(
  { timers }: Pick<CarrierPorts, "timers">,
  ms: number,
  signal?: AbortSignal,
  wake?: Promise<unknown>,
): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = timers.set(ms, resolve);
  const abort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  void wake?.then(() => resolve(), reject);
  try {
    await promise;
  } finally {
    stop();
    signal?.removeEventListener("abort", abort);
  }
}

type Answer = CarrierFile | "unchanged" | undefined;

/** Whether a reader that waits continues to wait: the file is unchanged, or not there yet. */
export function isPending(answer: Answer, after: string | undefined): boolean {
  return answer === "unchanged" || (answer === undefined && after === undefined);
}

/** Reads until the file has changed or `waitMs` have passed. `untilChange` returns after a pause, or when something happened. */
export async function readUntilChanged(
  read: (leftMs: number) => Promise<Answer>,
  { after, waitMs = 0 }: GetOptions,
  { clock }: Pick<CarrierPorts, "clock">,
  untilChange: (leftMs: number) => Promise<void>,
): Promise<Answer> {
  const giveUpAt = clock.monotonic() + waitMs;
  for (;;) {
    const answer = await read(Math.max(0, giveUpAt - clock.monotonic()));
    const leftMs = giveUpAt - clock.monotonic();
    if (leftMs <= 0 || !isPending(answer, after)) return answer;
    await untilChange(leftMs);
  }
}
