// Meet own: a site compares its log with the copies that others have of it, before it signs or hands out anything (F-12).
//
// meet-own.N1. A store that was restored from a backup lacks records that it has handed out. If its log is a prefix of the copy, it takes
//   the missing records back into its log, as they were.
// meet-own.N2. If the store has written since, its log and the copy differ: the copy is what others have, so it stands and is closed. The
//   site continues under the next epoch. Its first record puts evidence of both heads; the records that only the store has follow.
// meet-own.N3. A size is signed once: what the home or a carrier has under a signature of this site is never signed with another root.
//   So a round of sync begins here, and the home is compared first: it is a copy that needs no network.

import { canonicalJson } from "../../base/index.ts";
import type { LogRow, Store } from "../../kernel/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import type { Carrier } from "../../carriers/index.ts";
import type { Home } from "../home/home.ts";
import type { Checkpoint } from "../log/checkpoint.ts";
import { contentOf } from "../log/content.ts";
import { LogTree } from "../log/log-tree.ts";
import { nextEpoch, type Origin } from "../log/origin.ts";
import { nextRecord, recordText, type LogEnd, type LogRecord, type RecordBody } from "../log/record.ts";
import { CHECKPOINT_PATH } from "../log/tiles.ts";
import { homeCopy, carrierCopy, type OwnCopy } from "./own-copy.ts";
import { headsThatFit, readOwnEnd, seenIn, type OwnEnd } from "./own-log.ts";
import { EVIDENCE_TYPE } from "./publish.ts";

export type MetOwn =
  | { readonly status: "same" }
  /** meet-own.N1 */
  | { readonly status: "healed"; readonly records: number }
  /** meet-own.N2 */
  | { readonly status: "opened"; readonly origin: Origin; readonly closed: Origin; readonly at: number };

/** How often a change of the log by another process is followed. */
const ATTEMPTS = 20;

/** Compares the log of a store with the copy in its home and, if there is one, on a carrier. */
export async function meetOwn(store: Store, home: Home, key: SigningKey, carrier?: Carrier): Promise<MetOwn> {
  const local = await meetCopies(store, home, key, async (origin) => homeCopy(home, origin), undefined);
  if (carrier === undefined) return local;
  const remote = await meetCopies(store, home, key, (origin) => carrierCopy(home, carrier, origin, key), carrier);
  return remote.status === "same" ? local : remote;
}

async function meetCopies(
  store: Store,
  home: Home,
  key: SigningKey,
  copyOf: (origin: Origin) => Promise<OwnCopy | undefined>,
  carrier: Carrier | undefined,
): Promise<MetOwn> {
  let records = 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const end = await readOwnEnd(store, key);
    const copy = await copyOf(end.origin);
    const relation = copy === undefined ? ({ status: "same" } as const) : await relate(store, end, copy);
    if (relation.status === "forked") {
      // What others have of the closed log, this site has as well.
      await keepCopy(home, copy!);
      const opened = await openEpoch(store, home, key, end, copy!.head, relation.at, carrier);
      if (opened === undefined) continue;
      return { status: "opened", origin: opened, closed: end.origin, at: relation.at };
    }
    const missing = relation.status === "prefix" ? copy! : await laterEpoch(home, end, copyOf, carrier);
    if (missing === undefined) return records === 0 ? { status: "same" } : { status: "healed", records };
    records += await takeBack(store, home, end, missing);
  }
  return { status: "healed", records };
}

/** By home: the places where this process has looked for a later epoch. */
const LOOKED = new WeakMap<Home, Set<string>>();

/** An epoch after the one in force that a copy has: the backup is from before it was opened. A process looks for it once. */
async function laterEpoch(
  home: Home,
  { origin, size }: OwnEnd,
  copyOf: (origin: Origin) => Promise<OwnCopy | undefined>,
  carrier: Carrier | undefined,
): Promise<OwnCopy | undefined> {
  const looked = LOOKED.get(home) ?? new Set();
  LOOKED.set(home, looked);
  const place = `${origin} ${carrier?.url ?? ""}`;
  if (size === 0 || (carrier !== undefined && looked.has(place))) return undefined;
  looked.add(place);
  return copyOf(nextEpoch(origin));
}

type Relation = { readonly status: "same" | "prefix" } | { readonly status: "forked"; readonly at: number };

const PAGE = 1_000;

/** How the log of the store stands to a copy: `same` also if the store has more. */
async function relate(store: Store, end: OwnEnd, copy: OwnCopy): Promise<Relation> {
  const { size } = copy.head;
  const common = Math.min(size, end.size);
  // The copy is a prefix if its last records are those of the store: a log that was written twice differs at its end.
  if (size <= end.size && (await areSame(store, end, copy, Math.max(0, size - PAGE), size))) return { status: "same" };
  for (let at = 0; at < common; at += PAGE) {
    const upTo = Math.min(at + PAGE, common);
    const [own, other] = [await rowsOf(store, end, at, upTo), await copy.records(at, upTo)];
    const differs = own.findIndex(({ rec }, index) => rec !== other[index]);
    if (differs !== -1) return { status: "forked", at: at + differs };
  }
  return { status: size <= end.size ? "same" : "prefix" };
}

async function areSame(store: Store, end: OwnEnd, copy: OwnCopy, from: number, upTo: number): Promise<boolean> {
  const [own, other] = [await rowsOf(store, end, from, upTo), await copy.records(from, upTo)];
  return own.length === other.length && own.every(({ rec }, index) => rec === other[index]);
}

/** Rows of the epoch in force, by the numbers of their records. */
async function rowsOf(store: Store, end: OwnEnd, after: number, upTo: number): Promise<readonly LogRow[]> {
  return upTo === after ? [] : store.readLog(end.rows - end.size + after, upTo - after);
}

/** meet-own.N1. Returns how many records came back. */
async function takeBack(store: Store, home: Home, end: OwnEnd, copy: OwnCopy): Promise<number> {
  const { head } = copy;
  const from = head.origin === end.origin ? end.size : 0;
  let taken = 0;
  for (let at = from, rows = end.rows; at < head.size;) {
    const texts = await copy.records(at, Math.min(at + PAGE, head.size));
    if (texts.length === 0) break;
    const records = texts.map((rec) => ({ rec }));
    const [outcome] = await store.write([{ write: "sequence", expect: rows, records, done: [] }]);
    if (outcome.status === "stale") break;
    rows = outcome.size;
    at += texts.length;
    taken += texts.length;
  }
  if (taken > 0) await keepCopy(home, copy);
  return taken;
}

/** Brings a copy of an own log that a carrier has into the home, under the notes that were signed for it. */
async function keepCopy(home: Home, copy: OwnCopy): Promise<void> {
  await copy.keep?.(home);
}

/** meet-own.N2. The new origin; undefined: the log has changed meanwhile. */
async function openEpoch(
  store: Store,
  home: Home,
  key: SigningKey,
  end: OwnEnd,
  head: Checkpoint,
  at: number,
  carrier: Carrier | undefined,
): Promise<Origin | undefined> {
  const opened = await freeEpoch(home, end.origin, carrier);
  const rows = await allRows(store, end, at);
  const evidence = contentOf(
    EVIDENCE_TYPE,
    canonicalJson({
      at,
      closed: end.origin,
      here: { root: (await rootOf(store, end)).toString("hex"), size: end.size },
      note: head.note,
      opened,
      v: 1,
    }),
  );
  home.putContents([evidence]);
  const bodies: { readonly body: RecordBody; readonly row?: LogRow }[] = [
    { body: { op: "put", k: evidence.key } },
    ...rows.flatMap((row) => {
      const { op, k, s, x } = JSON.parse(row.rec) as LogRecord;
      // The epoch begins with the newest key (key-history.H4).
      if (op === "key") return [];
      return {
        row,
        body: { op, ...(k !== undefined && { k }), ...(s !== undefined && { s }), ...(x !== undefined && { x }) },
      };
    }),
  ];
  const seen = { ...headsThatFit(seenIn(home)), ...closedHead(home, end.origin, head) };
  let log: LogEnd = { origin: opened, size: 0, clock: 0 };
  const records = bodies.map(({ body, row }, index) => {
    const record = nextRecord(log, body, index === 0 ? seen : {});
    log = { origin: opened, size: record.n, clock: record.c };
    return { rec: recordText(record), run: row?.run, head: row?.head };
  });
  const [outcome] = await store.write([{ write: "sequence", expect: end.rows, records, done: [] }]);
  if (outcome.status === "stale") return undefined;
  home.admit(key.forOrigin(opened).vkey, { own: true });
  home.addConflict({ kind: "epoch", cell: `origin:${end.origin}`, evidence: { at, note: head.note, opened } });
  return opened;
}

/** The head of the closed log as it is here: its readers check the clock by it. */
function closedHead(home: Home, origin: Origin, head: Checkpoint): Record<Origin, { n: number; c: number }> {
  const state = home.origin(origin);
  return state === undefined || state.size === 0 || state.size > head.size
    ? {}
    : { [origin]: { n: state.size, c: state.clock } };
}

/** The first epoch that neither the home nor the carrier has. */
async function freeEpoch(home: Home, origin: Origin, carrier: Carrier | undefined): Promise<Origin> {
  for (let next = nextEpoch(origin); ; next = nextEpoch(next)) {
    if (home.origin(next) !== undefined) continue;
    if (carrier === undefined || (await carrier.get(`${next}/${CHECKPOINT_PATH}`)) === undefined) return next;
  }
}

async function allRows(store: Store, end: OwnEnd, after: number): Promise<readonly LogRow[]> {
  const rows: LogRow[] = [];
  for (let at = after; at < end.size; at += PAGE)
    rows.push(...(await rowsOf(store, end, at, Math.min(at + PAGE, end.size))));
  return rows;
}

async function rootOf(store: Store, end: OwnEnd): Promise<Buffer> {
  return LogTree.ofTexts((await allRows(store, end, 0)).map(({ rec }) => rec)).root();
}
