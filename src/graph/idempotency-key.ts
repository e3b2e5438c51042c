// The idempotency key of a checkpoint, bit for bit as seed 003 defines it (C1).
//
// SHA-256(run id ‖ i64be(step) ‖ for each item of the frontier, by order key: node ‖ u64be(order key) ‖ state). A digest,
// not an identity: it holds the result, and its unprefixed parts can collide. What keeps a step single is (run, step).

import { createHash, hash } from "node:crypto";
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
  const sorted = frontier.length < 2 ? frontier : [...frontier].sort(compareItems);
  return `sha256:${smallDigest(runId, step, sorted, stateParts) ?? digestOf(runId, step, sorted, stateParts)}`;
}

function digestOf(runId: string, step: number, frontier: readonly KeyedItem[], parts: readonly string[]): string {
  const digest = createHash("sha256").update(runId).update(i64be(step));
  for (const { node, orderKey } of frontier) digest.update(node).update(Buffer.from(orderKey, "hex"));
  for (const part of parts) digest.update(part);
  return digest.digest("hex");
}

const scratch = Buffer.alloc(8_192);

/** Written to one buffer and hashed at once, which is quicker than piece by piece; undefined when there is too much. */
function smallDigest(
  runId: string,
  step: number,
  frontier: readonly KeyedItem[],
  parts: readonly string[],
): string | undefined {
  let length = runId.length + 8;
  for (const { node } of frontier) length += node.length + 8;
  for (const part of parts) length += part.length;
  // A character is at most three bytes.
  if (length * 3 > scratch.length) return undefined;
  let at = scratch.write(runId);
  at = scratch.writeBigInt64BE(BigInt(step), at);
  for (const { node, orderKey } of frontier) {
    at += scratch.write(node, at);
    at += scratch.write(orderKey, at, "hex");
  }
  for (const part of parts) at += scratch.write(part, at);
  return hash("sha256", scratch.subarray(0, at));
}

function i64be(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}
