// How the heads of a world are signed. A signature costs 64 µs and its check 175 µs, so most worlds do without; the others use real keys.

import {
  KeyHistory,
  signCheckpoint,
  type Checkpoint,
  type LogRecord,
  type Origin,
} from "../../../src/federation/index.ts";
import { signingKeyOf, type SigningKey } from "../../../src/receipts/index.ts";

export interface HeadSigner {
  signHead(origin: Origin, size: number, root: Buffer): Checkpoint;
  /** Throws if the key in force did not sign. `records` are those that the reader holds. */
  open(checkpoint: Checkpoint, records: readonly LogRecord[]): void;
  /** The record names the next key. */
  rotate(origin: Origin, record: LogRecord): void;
}

/** Keys of eight sites, and the four that each has over time. */
const SITES: readonly (readonly SigningKey[])[] = Array.from({ length: 8 }, (_, site) => {
  const first = signingKeyOf(Buffer.alloc(32, site + 1), `site${site}`);
  const later = [1, 2, 3].map((term) => signingKeyOf(Buffer.alloc(32, 100 + site * 4 + term), first.origin));
  return [first, ...later];
});

export const ORIGINS: readonly Origin[] = SITES.map(([first]) => first!.origin);
export const MAX_ROTATIONS = 3;

export function keysOf(origin: Origin): readonly SigningKey[] {
  return SITES[ORIGINS.indexOf(origin)]!;
}

export const UNSIGNED: HeadSigner = {
  signHead: (origin, size, root) => ({ origin, size, root: root.toString("base64"), note: "" }),
  open: () => undefined,
  rotate: () => undefined,
};

export function signing(): HeadSigner {
  const terms = new Map<Origin, number>();
  return {
    signHead: (origin, size, root) => signCheckpoint(keysOf(origin)[terms.get(origin) ?? 0]!, origin, size, root),
    open: ({ origin, note }, records) => void KeyHistory.of(keysOf(origin)[0]!.vkey, records).open(note),
    rotate: (origin) => void terms.set(origin, (terms.get(origin) ?? 0) + 1),
  };
}
