// The idempotency key of a checkpoint, bit for bit as seed 003 defines it (C1).
//
// SHA-256(run id ‖ i64be(step) ‖ for each item of the frontier, by order key: node ‖ u64be(order key) ‖ state). A digest,
// not an identity: it holds the result, and its unprefixed parts can collide. What keeps a step single is (run, step).

import { createHash } from "node:crypto";
import { compareItems, type OrderKey, type Path } from "./order-key.ts";

export interface KeyedItem {
  readonly node: string;
  readonly orderKey: OrderKey;
  readonly path: Path;
}

/** `stateParts` together are the canonical text of the state; apart, so that what did not change is not joined again. */
export function idempotencyKeyOf(
  runId: string,
  step: number,
  frontier: readonly KeyedItem[],
  stateParts: readonly string[],
): string {
  const digest = createHash("sha256").update(runId).update(i64be(step));
  for (const { node, orderKey } of [...frontier].sort(compareItems))
    digest.update(node).update(Buffer.from(orderKey, "hex"));
  for (const part of stateParts) digest.update(part);
  return `sha256:${digest.digest("hex")}`;
}

function i64be(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}
