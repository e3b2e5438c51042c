// Apply records: makes the next records of a log visible. Part of a transaction of federation.db.

import type { LogTree } from "../log/log-tree.ts";
import type { LogRecord } from "../log/record.ts";
import { snapshotId, type SnapshotHeads } from "../log/snapshot.ts";
import { keyBlob } from "./blobs.ts";
import type { HomeParts } from "./home-parts.ts";
import type { OriginRow, Origins } from "./origins.ts";

export interface Applied {
  readonly row: OriginRow;
  readonly records: readonly LogRecord[];
  /** Of the log up to the last of them. */
  readonly tree: LogTree;
  readonly from: string | undefined;
  /** Keys whose bytes were written before. */
  readonly written?: ReadonlySet<string>;
}

export function applyRecords(parts: HomeParts, { row, records, tree, from, written }: Applied): void {
  const { db, cells, erasure, log, origins, clock } = parts;
  const { number } = row;
  const touched = cells.join(records, number);
  for (const { op, n, v } of records)
    if (op === "key") db.run("insert into origin_key (origin, n, vkey) values (?, ?, ?)", number, n, v!);
  const root = tree.root().toString("hex");
  db.run(
    "update origin set size = ?, clock = ?, root = ?, peaks = ? where number = ?",
    ...[tree.size, records.at(-1)?.c ?? row.clock, root, tree.peaks(), number],
  );
  erasure.mark(touched, () => log.visibleBounds());
  want(parts, number, records, written);
  db.run(
    "insert into applied (origin, n, root, peer, snapshot, at) values (?, ?, ?, ?, ?, ?)",
    ...[number, tree.size, root, from ?? null, snapshotId(visibleHeads(origins)), clock.now()],
  );
}

/** Notes the contents that records name and no peer has brought yet. */
export function want(
  { db, contents, erasure }: HomeParts,
  number: number,
  records: Iterable<LogRecord>,
  written: ReadonlySet<string> = new Set(),
): void {
  const puts = [...records].flatMap(({ n, k }) => (k === undefined || written.has(k) ? [] : [{ n, k }]));
  const keys = puts.map(({ k }) => k);
  const [here, erased] = [contents.knows(keys), erasure.erasedOf(keys)];
  const insert = db.sql("insert or ignore into wanted (origin, n, key) values (?, ?, ?)");
  for (const { n, k } of puts) if (!here.has(k) && !erased.has(k)) insert.run(number, n, keyBlob(k));
}

/** The cut of everything that is visible. */
export function visibleHeads(origins: Origins): SnapshotHeads {
  return Object.fromEntries(
    origins.list().flatMap(({ id, size, root }) => (size === 0 ? [] : [[id, [size, root] as const]])),
  );
}
