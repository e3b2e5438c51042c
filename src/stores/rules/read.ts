// Read: reads runs, journals, inboxes and items.

import { invariant } from "../../base/index.ts";
import {
  hasEnded,
  type Entry,
  type InboxRow,
  type ItemInfo,
  type RunEnd,
  type RunNumber,
  type RunProgress,
  type RunRecord,
  type VersionCount,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { MESSAGE, messageOf } from "./inbox.ts";
import { findNewest, recordOf, RUN_COLUMNS, taggedRecord } from "./run-rows.ts";
import { tagsOf } from "./tags.ts";

/** The newest generation, or the given one. */
export function findRun(rows: Rows, id: string, generation?: number): RunRecord | undefined {
  const row = generation === undefined ? findNewest(rows, id) : rows.first("runs_by_id", [id, generation], RUN_COLUMNS);
  return row && recordOf(rows, row);
}

const VERSION = ["definition", "version"] as const;

/** One seek per version; the runs are counted in the index. */
export function countVersions(rows: Rows): readonly VersionCount[] {
  return rows.distinct("runs_live", [], VERSION).map(({ definition, version }) => ({
    name: definition,
    version,
    live: rows.count("runs_live", [definition, version]),
    due: rows.count("runs_due", [definition, version]),
  }));
}

const ENTRY = ["seq", "type", "command", "data", "at", "mark", "took_ms", "worker", "execution", "started_at"] as const;

export function readJournal(rows: Rows, run: RunNumber, after: number, limit?: number): readonly Entry[] {
  return rows.select("journal", [run], ENTRY, limit === undefined ? { after } : { after, limit }).map(entryOf);
}

const LAST = { backwards: true } as const;

/** A store on a server does not know the run yet when it sends the queries, so it reads the tags and the entry with it. */
export function readEnd(rows: Rows, run: RunNumber): RunEnd | undefined {
  const row = rows.get("runs", [run], RUN_COLUMNS);
  if (row === undefined && !rows.isGuess) return undefined;
  const tags = tagsOf(rows, run);
  const mayHaveEnded = row === undefined || hasEnded(row.status);
  const last = mayHaveEnded ? rows.first("journal", [run], ENTRY, LAST) : undefined;
  return row && { record: taggedRecord(row, tags), last: last && entryOf(last) };
}

const STEP = ["seq"] as const;

/** The entries of a graph's steps: entries between two steps are not read. */
export function readSteps(rows: Rows, run: RunNumber, after: number, upTo: number, limit?: number): readonly Entry[] {
  const span = limit === undefined ? { after, upTo } : { after, upTo, limit };
  return rows
    .select("checkpoints", [run], STEP, span)
    .map(({ seq }) => rows.get("journal", [run, seq], ENTRY))
    .flatMap((row) => (row === undefined ? [] : [entryOf(row)]));
}

function entryOf(row: Part<"journal", (typeof ENTRY)[number]>): Entry {
  const { seq, type, command, data, at, mark, took_ms: tookMs } = row;
  if (tookMs === null) return { seq, type, command, data, at, mark };
  const { execution, worker, started_at: startedAt } = row;
  return {
    seq,
    type,
    command,
    data,
    at,
    mark,
    execution: execution ?? undefined,
    worker: worker ?? undefined,
    startedAt: startedAt ?? at - tookMs,
    tookMs,
  };
}

/** The messages after a number. */
export function readInbox(rows: Rows, run: RunNumber, after: number): readonly InboxRow[] {
  return rows.select("inbox", [run], MESSAGE, { after }).map(messageOf);
}

const PROGRESS = ["run", "id", "status", "arrivals", "turn_token"] as const;

export function readProgress(rows: Rows, runs: readonly RunNumber[]): readonly RunProgress[] {
  return runs
    .map((run) => rows.get("runs", [run], PROGRESS))
    .flatMap((row) => {
      if (row === undefined) return [];
      const { run, id, status, arrivals, turn_token: token } = row;
      return [{ run, id, status, arrivals, token: token ?? undefined }];
    });
}

const TOKEN = ["token"] as const;

export function readItemTokens(
  rows: Rows,
  items: readonly { readonly run: RunNumber; readonly item: string }[],
): readonly (string | undefined)[] {
  return items.map(({ run, item }) => rows.get("queue", [run, item], TOKEN)?.token ?? undefined);
}

/** The public name of each `QueueItemState`: a suspect and a parked item are ready, an admitted start is leased. */
const ITEM_STATE_NAMES: readonly (ItemInfo["state"] | undefined)[] = [
  "delayed",
  "ready",
  "leased",
  "stopped",
  "ready",
  "ready",
  "leased",
];

function itemStateName(state: number): ItemInfo["state"] {
  const name = ITEM_STATE_NAMES[state];
  invariant(name !== undefined, "A queue row must have a known state.");
  return name;
}

const ITEM = ["state", "attempt", "available_at", "failures"] as const;

export function readItems(rows: Rows, run: RunNumber, items: readonly string[]): readonly (ItemInfo | undefined)[] {
  return items.map((item) => {
    const row = rows.get("queue", [run, item], ITEM);
    if (row === undefined) return undefined;
    const { state, attempt, available_at: availableAt, failures } = row;
    return { state: itemStateName(state), attempt, availableAt, failures: failures ?? undefined };
  });
}
