// Random: counter-based random numbers. A draw is a hash of (run seed, path, index), so it depends on where the code draws,
// and not on time, order or process. Not for secrets: the run id determines every draw.

import { digestOf, sha256Hex } from "./digest.ts";
import { invariant } from "./errors.ts";

/** The first 8 bytes of SHA-256(run id in UTF-8), big-endian, as int64. Each generation of a run has another seed. */
export function seedOf(runId: string, generation = 0): bigint {
  const text = generation === 0 ? runId : `${runId}#${generation}`;
  return BigInt.asIntN(64, BigInt(`0x${sha256Hex(text).slice(0, 16)}`));
}

/** In [0, 1), with 53 bits. */
export function drawUnit(seed: bigint, path: string, index: number): number {
  const hex = digestOf("reprise/draw/v1", seed, path, index);
  const high = Number.parseInt(hex.slice(0, 8), 16);
  const low = Number.parseInt(hex.slice(8, 14), 16) >>> 3;
  return (high * 2 ** 21 + low) / 2 ** 53;
}

/** A whole number in [0, max). */
export function drawInt(seed: bigint, path: string, index: number, max: number): number {
  invariant(Number.isSafeInteger(max) && max > 0, "the bound of drawInt is a positive whole number", { max });
  return Math.floor(drawUnit(seed, path, index) * max);
}

/** Bytes of any number, in a domain of their own. */
export function drawBytes(seed: bigint, path: string, index: number, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let part = 0; part * 32 < count; part += 1) {
    const drawn = Buffer.from(digestOf("reprise/bytes/v1", seed, path, index, part), "hex");
    bytes.set(drawn.subarray(0, Math.min(32, count - part * 32)), part * 32);
  }
  return bytes;
}

/** In the layout of a version 4 UUID. A separate domain makes it independent of the unit draw of the same index. */
export function drawUuid(seed: bigint, path: string, index: number): string {
  const hex = digestOf("reprise/uuid/v1", seed, path, index);
  const variant = "89ab".charAt(Number.parseInt(hex.charAt(16), 16) & 3);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
