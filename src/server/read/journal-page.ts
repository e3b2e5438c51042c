// Journal page: entries with the sentence of each.
//
// journal-page.P1. The sentence of an entry that ends a command names it, and the name is in the entry that requested it. So a page reads some
//   entries before its first one; a command that was requested earlier than those has its number for a name.

import { clip, RepriseError } from "../../base/index.ts";
import type { JournalEntryBody } from "../../contract/index.ts";
import { TimelineReader } from "../../explain/index.ts";
import { journalEntryOf, type Entry, type JournalEntry, type RunRecord, type Store } from "../../kernel/index.ts";
import { readSharedAsWritten } from "../../workflow/index.ts";
import { withoutPayload } from "./hidden-entry.ts";
import { isoOf, shownPayload, type View } from "./view.ts";

const READ_BEFORE = 500;
const MAX_TEXT = 500;

export interface JournalPage {
  readonly items: readonly JournalEntryBody[];
  readonly next?: string;
}

export interface JournalRange {
  readonly after: string | undefined;
  readonly limit: number;
  readonly order: "first" | "last";
}

/** The cursor is a seq. In the entries that a fork shares with its origin it is `~` and a position. */
export async function readJournalPage(
  store: Store,
  record: RunRecord,
  { after, limit, order }: JournalRange,
  view: View,
): Promise<JournalPage> {
  const { run, head } = record;
  if (order === "last") {
    const before = after === undefined ? head + 1 : seqOf(after);
    const from = Math.max(0, before - 1 - limit);
    const items = await linesOf(store, record, from, before - 1 - from, view);
    return { items: items.toReversed(), ...(from > 0 && { next: String(from + 1) }) };
  }
  const shared =
    record.kind === "workflow" && (after === undefined || after.startsWith("~")) ? await sharedOf(store, run) : [];
  const position = after?.startsWith("~") === true ? seqOf(after.slice(1)) : 0;
  if (position < shared.length) {
    const page = sharedLines(shared, position, limit, record, view);
    return { items: page, next: position + limit < shared.length ? `~${position + limit}` : "0" };
  }
  const from = after === undefined || after.startsWith("~") ? 0 : seqOf(after);
  const items = await linesOf(store, record, from, limit, view);
  const last = from + items.length;
  return { items, ...(last < head && items.length > 0 && { next: String(last) }) };
}

function seqOf(cursor: string): number {
  return Math.max(0, Math.trunc(Number(cursor)) || 0);
}

/** journal-page.P1 */
async function linesOf(
  store: Store,
  { run, createdAt }: RunRecord,
  from: number,
  count: number,
  view: View,
): Promise<readonly JournalEntryBody[]> {
  if (count <= 0) return [];
  const readFrom = Math.max(0, from - READ_BEFORE);
  const entries = await store.readJournal(run, readFrom, from - readFrom + count);
  const reader = new TimelineReader(createdAt);
  return entries.map((entry) => lineOf(reader, entry, view)).filter(({ seq }) => seq > from);
}

async function sharedOf(
  store: Store,
  run: number,
): Promise<readonly { readonly run: string; readonly entry: Entry }[]> {
  const [first] = await store.readJournal(run, 0, 1);
  const parts = await readSharedAsWritten(store, first);
  return parts.flatMap(({ run: by, entries }) => entries.map((entry) => ({ run: by, entry })));
}

function sharedLines(
  shared: Awaited<ReturnType<typeof sharedOf>>,
  position: number,
  limit: number,
  { createdAt }: RunRecord,
  view: View,
): readonly JournalEntryBody[] {
  const reader = new TimelineReader(shared[0]?.entry.at ?? createdAt);
  return shared
    .slice(0, position + limit)
    .map(({ run, entry }) => ({ ...lineOf(reader, entry, view), run }))
    .slice(position);
}

/** An entry with its sentence. */
export function lineOf(reader: TimelineReader, entry: Entry, view: View): JournalEntryBody {
  const decoded = decodedEntry(entry);
  if (decoded === undefined) return damagedLine(entry);
  const { tone, name, text } = reader.read(
    view.showsPayloads ? { ...decoded, data: view.redaction.data(decoded.data) } : withoutPayload(decoded),
  );
  const { seq, type, command, at, worker, execution, startedAt, tookMs } = decoded;
  return {
    seq,
    type,
    ...(command !== undefined && { command }),
    at: isoOf(at),
    ...(view.showsPayloads ? { data: shownPayload(view, decoded.data) } : { hidden: ["data"] }),
    ...(worker !== undefined && { worker }),
    ...(execution !== undefined && { execution }),
    ...(startedAt !== undefined && { startedAt: isoOf(startedAt) }),
    ...(tookMs !== undefined && { tookMs }),
    line: { tone, name, text: clip(view.redaction.text(text), MAX_TEXT) },
  };
}

/** Undefined: its data is damaged. Operators read such a journal to find out what is. */
function decodedEntry(entry: Entry): JournalEntry | undefined {
  try {
    return journalEntryOf(entry);
  } catch (error) {
    if (error instanceof RepriseError && error.code === "BAD_PAYLOAD") return undefined;
    throw error;
  }
}

function damagedLine({ seq, type, command, at }: Entry): JournalEntryBody {
  return {
    seq,
    type,
    ...(command !== "" && { command }),
    at: isoOf(at),
    line: { tone: "bad", name: type, text: "The data of this entry is damaged. Run `reprise doctor`." },
  };
}
