// Explain backlog: why the pending work of the store is not claimed, by the names it is claimed by. For `top` and `doctor`.

import type { Backlog, QueueUse, Store, WorkerInfo } from "../kernel/index.ts";
import { claimReasons, slotUserOf } from "./claims.ts";
import type { PendingItems, WaitReason } from "./reasons.ts";
import { withAdvice } from "./sentences.ts";

/** A part of the backlog, and why no worker has claimed it. */
export interface ExplainedBacklog extends Backlog {
  readonly reasons: readonly [WaitReason, ...WaitReason[]];
}

export async function explainBacklog(
  store: Store,
  backlog: readonly Backlog[],
  workers: readonly WorkerInfo[],
): Promise<readonly ExplainedBacklog[]> {
  const uses = new Map<string, QueueUse | undefined>();
  for (const { kind, queue } of backlog) {
    if (queue === undefined || kind === "turn") continue;
    const text = JSON.stringify([slotUserOf(kind), queue]);
    if (!uses.has(text)) uses.set(text, await store.readQueueUse(slotUserOf(kind), queue));
  }
  const now = store.now();
  return backlog.map((one) => {
    const { kind, name, version, queue, count } = one;
    const work: PendingItems = {
      kind: kind === "turn" ? "run" : kind,
      name,
      ...(version !== undefined && { version }),
      ...(queue !== undefined && { queue }),
      count,
      commands: [],
    };
    const use =
      queue === undefined || kind === "turn" ? undefined : uses.get(JSON.stringify([slotUserOf(kind), queue]));
    const [first, ...others] = claimReasons({ work, claimed: one, use, takeovers: 0, unread: 0 }, workers, now);
    // The sentences name no run: the reasons of a backlog have none.
    const advised = { id: "", now, hasUnread: false };
    return { ...one, reasons: [withAdvice(first, advised), ...others.map((reason) => withAdvice(reason, advised))] };
  });
}
