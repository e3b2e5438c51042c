// Payload columns: the columns that hold payloads, and the statements that read or write them. Used only with a codec.
//
// A new payload column is added to COLUMNS. Every statement that casts it to a blob or to text is added to PLACES.

export interface PayloadColumn {
  readonly table: string;
  readonly column: string;
  /** SQL for the number of the payload's run, 0 where there is none. */
  readonly run: string;
  readonly place: string;
  /** The key that orders the rows: `rowid`, or the primary key of a table without rowid. */
  readonly key: readonly string[];
}

/** By the name of the field in the codec's context. A name never changes: the codec authenticates it with every payload. */
export const COLUMNS = {
  journal: { table: "journal", column: "data", run: "run", place: "seq", key: ["rowid"] },
  inbox: { table: "inbox", column: "data", run: "run", place: "arrival", key: ["rowid"] },
  failures: { table: "queue", column: "failures", run: "run", place: "item", key: ["run", "item"] },
  chunk: { table: "chunks", column: "data", run: "run", place: "stream || '/' || position", key: ["rowid"] },
  evidence: { table: "runs", column: "evidence", run: "run", place: "0", key: ["run"] },
  checkpoint: { table: "checkpoints", column: "state", run: "run", place: "step", key: ["rowid"] },
  schedule: { table: "schedules", column: "input", run: "0", place: "name", key: ["rowid"] },
  langgraph: {
    table: "langgraph_values",
    column: "data",
    run: "0",
    place: "json_array(value, thread, place)",
    key: ["value"],
  },
  langgraph_write: {
    table: "langgraph_writes",
    column: "data",
    run: "0",
    place: "json_array(thread, namespace, id, task, position, channel)",
    key: ["rowid"],
  },
} as const satisfies Record<string, PayloadColumn>;

export type PayloadField = keyof typeof COLUMNS;

/** The field of a statement's payload. `run` and `place`: SQL that the statement uses instead of the field's columns. */
export interface PayloadPlace {
  readonly field: PayloadField;
  readonly run?: string;
  readonly place?: string;
}

const JOURNAL: PayloadPlace = { field: "journal" };
const INBOX: PayloadPlace = { field: "inbox" };
const FAILURES: PayloadPlace = { field: "failures" };
const EVIDENCE: PayloadPlace = { field: "evidence" };
const SCHEDULE: PayloadPlace = { field: "schedule" };

/** By the name of the statement. */
export const PLACES: Readonly<Record<string, PayloadPlace>> = {
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
