// Checkpoint key: the idempotency key of a checkpoint, bit for bit as seed 003 defines it (rules.C1).
//
// SHA-256(run id ‖ i64be(step) ‖ for each item of the frontier, by order key: node ‖ u64be(order key) ‖ state). It is a
// digest, not an identity: its parts have no length prefix and can collide. (run, step) is what makes a step unique.

import { createHash, hash } from "node:crypto";
import { compareItems, type OrderKey, type Path } from "./order-key.ts";

export interface KeyedItem {
  readonly node: string;
  readonly orderKey: OrderKey;
  readonly path: Path;
}

/** `stateParts` joined are the canonical text of the state. They stay separate so that unchanged parts are not copied. */
export function checkpointKeyOf(
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

/** One call of `hash` on one buffer is faster than several updates. Undefined if the input does not fit the buffer. */
function smallDigest(
  runId: string,
  step: number,
  frontier: readonly KeyedItem[],
  parts: readonly string[],
): string | undefined {
  let length = runId.length + 8;
  for (const { node } of frontier) length += node.length + 8;
  for (const part of parts) length += part.length;
  // UTF-8 uses at most three bytes per UTF-16 unit.
  if (length * 3 > scratch.length) return undefined;
  let at = scratch.write(runId);
  // A step is a whole number below 2^53, so the high half is small.
  at = scratch.writeUInt32BE(Math.floor(step / 2 ** 32), at);
  at = scratch.writeUInt32BE(step >>> 0, at);
  for (const { node, orderKey } of frontier) {
    at += scratch.write(node, at);
    at += scratch.write(orderKey, at, "hex");
  }
  at += scratch.write(parts.join(""), at);
  return hash("sha256", scratch.subarray(0, at));
}

function i64be(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}
