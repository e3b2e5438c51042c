// Pending work: texts about the backlog of the store, and why no worker has claimed it.

import { formatMs } from "../base/index.ts";
import type { ExplainedBacklog, WaitReason } from "../explain/index.ts";
import { reasonJson } from "./explanation.ts";
import { withStoreOption } from "./next-command.ts";
import { isoOf } from "./run-format.ts";
import { plain } from "./text.ts";

/** No live worker can claim it. */
export function isUnclaimable(pending: ExplainedBacklog): boolean {
  return noWorkerOf(pending) !== undefined;
}

export function noWorkerOf({ reasons }: ExplainedBacklog): Extract<WaitReason, { reason: "no_worker" }> | undefined {
  return reasons.find((one) => one.reason === "no_worker");
}

/** A sentence per reason, each with its first command. */
export function pendingTexts({ reasons, oldestAt }: ExplainedBacklog, now: number): readonly string[] {
  const age = oldestAt === undefined ? "" : ` (oldest ${formatMs(Math.max(0, now - oldestAt))})`;
  return reasons.flatMap(({ reason, text, next: [next] }) => [
    `${plain(text).replace(/\.$/, "")}${age}`,
    ...(next === undefined || reason === "unclaimed" ? [] : [`  next: ${withStoreOption(plain(next))}`]),
  ]);
}

export function pendingJson(pending: ExplainedBacklog): object {
  const { kind, name, version, queue, label, count, oldestAt, reasons } = pending;
  const lacking = noWorkerOf(pending);
  const [first] = reasons;
  return {
    kind,
    name,
    version: version ?? null,
    queue: queue ?? lacking?.queue ?? null,
    label: label ?? lacking?.label ?? null,
    count,
    oldestAt: isoOf(oldestAt),
    reason: first.reason === "unclaimed" ? null : first.text,
    reasons: reasons.map(reasonJson),
  };
}
