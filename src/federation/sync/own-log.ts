// Own log: the log of this site's store, and how a record is appended to it.
//
// own-log.W1. The store numbers its rows densely. The records of an epoch are numbered from 1, so the rows of a later epoch have other
//   numbers than their records; the last row names the epoch in force.
// own-log.W2. A record is appended under the size that its author read (log.L3): of two authors one begins again.
// own-log.W3. A record names at most 256 heads: those with the greatest clocks, so it sorts after everything that its author has seen.

import { RepriseError } from "../../base/index.ts";
import type { RunNumber, SequencedRun, Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Home } from "../home/home.ts";
import type { Origin } from "../log/origin.ts";
import { nextRecord, recordText, type LogEnd, type LogRecord, type RecordBody } from "../log/record.ts";

/** The end of the log in a store. */
export interface OwnEnd extends LogEnd {
  /** The number of rows, of all epochs. */
  readonly rows: number;
}

export async function readOwnEnd(store: Store, key: SigningKey): Promise<OwnEnd> {
  const rows = await store.logSize();
  const [last] = rows === 0 ? [] : await store.readLog(rows - 1, 1);
  if (last === undefined) return { origin: key.origin, size: 0, clock: 0, rows };
  const { o, n, c } = JSON.parse(last.rec) as LogRecord;
  return { origin: o, size: n, clock: c, rows };
}

/** A record to append. */
export interface NewRecord {
  readonly body: RecordBody;
  readonly run?: RunNumber | undefined;
  /** With the record of a run's end: the number of its entries then. */
  readonly head?: number | undefined;
}

/** What an author has seen of other logs. */
export type Seen = Readonly<Record<Origin, { readonly n: number; readonly c: number }>>;

/** The heads of all other logs of a home. */
export function seenIn(home: Home): Seen {
  const heads = home.origins().filter(({ own, size }) => !own && size > 0);
  return Object.fromEntries(heads.map(({ id, size, clock }) => [id, { n: size, c: clock }]));
}

/** More heads might not fit into a record. */
const MAX_SEEN = 256;

/** own-log.W3. Those of the heads that go with one record. */
export function headsThatFit(seen: Seen): Seen {
  const heads = Object.entries(seen);
  if (heads.length <= MAX_SEEN) return seen;
  return Object.fromEntries(heads.toSorted(([, a], [, b]) => b.c - a.c).slice(0, MAX_SEEN));
}

/** own-log.W2. Appends to the log as it was read; undefined: another process was faster. */
export async function appendRecords(
  store: Store,
  end: OwnEnd,
  records: readonly NewRecord[],
  seen: Seen = {},
  done: readonly SequencedRun[] = [],
): Promise<OwnEnd | undefined> {
  let at: LogEnd = end;
  const rows = records.map(({ body, run, head }, index) => {
    const record = nextRecord(at, body, index === 0 ? headsThatFit(seen) : {});
    at = { origin: record.o, size: record.n, clock: record.c };
    return { rec: recordText(record), run, head };
  });
  const [outcome] = await store.write([{ write: "sequence", expect: end.rows, records: rows, done }]);
  return outcome.status === "committed" ? { ...at, rows: outcome.size } : undefined;
}

/** How often an author begins again. */
const ATTEMPTS = 100;

/** Appends records that are made of the end of the log; `make` returns none if there is nothing to do any more. */
export async function appendOwn(
  store: Store,
  key: SigningKey,
  make: (end: OwnEnd) => Promise<{ readonly records: readonly NewRecord[]; readonly seen?: Seen }>,
): Promise<OwnEnd> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const end = await readOwnEnd(store, key);
    const { records, seen } = await make(end);
    if (records.length === 0) return end;
    const appended = await appendRecords(store, end, records, seen);
    if (appended !== undefined) return appended;
  }
  throw new RepriseError("STORE_BUSY", "Other processes append to the log all the time. Try again later.");
}
