// Snapshot: a cut through the logs of all origins.
//
// snapshot.P1. A record is in a snapshot iff n <= heads[origin][0]. The state of a snapshot is a function of these records, for ever: a
//   record that arrives later is in another snapshot.
// snapshot.P2. The id is the key of the canonical text {heads, v}: equal cuts have equal ids.
// snapshot.P3. A cut is closed if it has every record that its records name in `y`. Origins that the site does not hold are left out.

import { artifactKey, canonicalJson, mediaType, RepriseError } from "../../base/index.ts";
import { isOrigin, type Origin } from "./origin.ts";
import type { LogRecord } from "./record.ts";

/** Per origin: the number of its records, and the root of their tree in hex. */
export interface SnapshotHeads {
  readonly [origin: Origin]: readonly [n: number, root: string];
}

export function snapshotText(heads: SnapshotHeads): string {
  return canonicalJson({ heads, v: 1 });
}

/** snapshot.P2 */
export function snapshotId(heads: SnapshotHeads): string {
  return artifactKey(mediaType("snapshot"), snapshotText(heads));
}

/** The heads of a snapshot's text. */
export function parseSnapshot(text: string): SnapshotHeads {
  const heads = findHeads(text);
  if (heads === undefined || snapshotText(heads) !== text)
    throw new RepriseError(
      "BAD_FORMAT",
      `A snapshot is the canonical text {"heads":{<origin>:[<n>,<root in hex>]},"v":1}; got ${JSON.stringify(text.slice(0, 120))}.`,
    );
  return heads;
}

function findHeads(text: string): SnapshotHeads | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const heads = (value as { readonly heads?: unknown } | null)?.heads;
  if (typeof heads !== "object" || heads === null || Array.isArray(heads)) return undefined;
  return Object.entries(heads).every(([origin, head]) => isOrigin(origin) && isHead(head))
    ? (heads as SnapshotHeads)
    : undefined;
}

function isHead(head: unknown): boolean {
  if (!Array.isArray(head) || head.length !== 2) return false;
  const [n, root] = head as readonly unknown[];
  return Number.isSafeInteger(n) && (n as number) >= 0 && typeof root === "string" && /^[0-9a-f]{64}$/.test(root);
}

/** snapshot.P1 */
export function isInSnapshot(heads: SnapshotHeads, { o, n }: Pick<LogRecord, "o" | "n">): boolean {
  const head = Object.hasOwn(heads, o) ? heads[o] : undefined;
  return head !== undefined && n <= head[0];
}

/** The records of a log that name others, in the order of `n`. */
export type SeenOf = (origin: Origin) => readonly Pick<LogRecord, "n" | "y">[];

/** snapshot.P3. The greatest closed cut that is nowhere above these sizes. */
export function closedCut(sizes: ReadonlyMap<Origin, number>, seenOf: SeenOf): Map<Origin, number> {
  const cut = new Map(sizes);
  const naming = new Map([...sizes.keys()].map((origin) => [origin, seenOf(origin)]));
  // Sizes only fall, so this ends.
  for (let isClosed = false; !isClosed;) {
    isClosed = true;
    for (const [origin, size] of cut) {
      const open = naming.get(origin)!.find(({ n, y }) => n <= size && !isWithin(cut, y));
      if (open === undefined) continue;
      cut.set(origin, open.n - 1);
      isClosed = false;
    }
  }
  return cut;
}

/** snapshot.P3 */
export function isClosedCut(sizes: ReadonlyMap<Origin, number>, seenOf: SeenOf): boolean {
  return [...sizes].every(([origin, size]) => seenOf(origin).every(({ n, y }) => n > size || isWithin(sizes, y)));
}

function isWithin(cut: ReadonlyMap<Origin, number>, y: LogRecord["y"]): boolean {
  return Object.entries(y ?? {}).every(([origin, n]) => n <= (cut.get(origin) ?? n));
}
