// Statement payloads: the codec in the statements of ./statements.ts, found by their names. It is deleted with them: the row port has
// its own (row-sql.Q1).
//
// In these statements `cast(? as blob)` and `cast(column as text)` become calls of the codec's SQL functions. Every statement that
// casts a payload to a blob or to text is in PLACES.

import { InvariantError } from "../../base/index.ts";
import { PAYLOADS, type TableName } from "../rows/tables.ts";
import { payloadArguments } from "./row-sql.ts";

/** The field of a statement's payload. `run` and `place`: SQL that the statement uses instead of the table's columns. */
interface StatementPlace {
  readonly field: string;
  readonly run?: string;
  readonly place?: string;
}

const TO_BLOB = /cast\((\?\d*) as blob\)/g;
const TO_TEXT = /cast\((\w+) as text\)/g;

export function touchesPayloads(sql: string): boolean {
  return /cast\(\?\d* as blob\)|cast\(\w+ as text\)/.test(sql);
}

/** The text of a statement with the codec. */
export function statementWithCodec(name: string, sql: string): string {
  if (!touchesPayloads(sql)) return sql;
  const at = PLACES[name];
  if (at === undefined) throw new InvariantError(`The statement ${name} is missing in PLACES (statement-payloads.ts).`);
  const where = placeText(at);
  return sql.replace(TO_BLOB, `reprise_encode($1, ${where})`).replace(TO_TEXT, `reprise_decode($1, ${where})`);
}

function placeText({ field, run, place }: StatementPlace): string {
  const table = (Object.keys(PAYLOADS) as TableName[]).find((name) => PAYLOADS[name]!.field === field)!;
  const [ownRun, ownPlace, name] = payloadArguments(table, (column) => column);
  return [run ?? ownRun, place ?? ownPlace, name].join(", ");
}

const JOURNAL: StatementPlace = { field: "journal" };
const INBOX: StatementPlace = { field: "inbox" };
const FAILURES: StatementPlace = { field: "failures" };
const EVIDENCE: StatementPlace = { field: "evidence" };
const SCHEDULE: StatementPlace = { field: "schedule" };

/** By the name of the statement. */
export const PLACES: Readonly<Record<string, StatementPlace>> = {
  insertEntry: { ...JOURNAL, run: "?1", place: "?2" },
  entry: JOURNAL,
  entriesAfter: JOURNAL,
  entries: JOURNAL,
  stepsAfter: { ...JOURNAL, run: "journal.run", place: "journal.seq" },
  entryData: JOURNAL,
  rewriteFirstEntry: JOURNAL,
  inputsOfNode: { ...JOURNAL, run: "arrivals.run", place: "arrivals.seq" },
  inputsOfNodes: { ...JOURNAL, run: "arrivals.run", place: "arrivals.seq" },
  insertInbox: { ...INBOX, place: "arrivals" },
  inboxAfter: INBOX,
  returnItem: FAILURES,
  readyItems: FAILURES,
  itemState: FAILURES,
  suspectItemGroup: FAILURES,
  readyItemsInQueue: FAILURES,
  insertChunk: { field: "chunk", run: "?1", place: "?2 || '/' || cast(?3 as integer)" },
  chunksAfter: { field: "chunk" },
  insertCheckpoint: { field: "checkpoint", run: "?1", place: "?2" },
  insertFencedCheckpoint: { field: "checkpoint", run: "?1", place: "?2" },
  wholeCheckpoint: { field: "checkpoint" },
  checkpoint: { field: "checkpoint" },
  run: EVIDENCE,
  newestRun: EVIDENCE,
  runOfGeneration: EVIDENCE,
  stopRun: EVIDENCE,
  pauseSelf: EVIDENCE,
  blockRun: EVIDENCE,
  takeOverTurns: EVIDENCE,
  stopFlow: EVIDENCE,
  schedule: SCHEDULE,
  schedulesAfter: SCHEDULE,
  dueSchedules: SCHEDULE,
  schedulesWithBacklog: SCHEDULE,
  insertSchedule: { ...SCHEDULE, place: "?1" },
  updateSchedule: { ...SCHEDULE, place: "?1" },
};
