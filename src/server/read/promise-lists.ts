// Promise lists: the open promises of all runs, and how those of recent runs were settled.
//
// promise-lists.P1. The history is read from journals: no table has it. A request reads the newest runs that may have settled promises, at most
//   `MAX_RUNS` of them and `MAX_ENTRIES` entries, and says in its answer how far it came.

import type { OpenPromiseBody, SettledPromiseBody } from "../../contract/index.ts";
import {
  decodeData,
  promiseNameOf,
  shownCost,
  type Entry,
  type EntryData,
  type OpenPromise,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../../kernel/index.ts";
import { thrownErrorOf } from "../../picture/index.ts";
import { maySeeDefinition, maySeeRun } from "../auth/scope.ts";
import type { Caller } from "../host.ts";
import { listPage } from "./run-selection.ts";
import { isoOf, payloadFields, type View } from "./view.ts";

const PAGE = 200;
const MAX_SORTED = 1_000;

export interface OpenRange {
  readonly name?: string | undefined;
  readonly definition?: string | undefined;
  readonly limit: number;
  readonly after?: string | undefined;
  readonly sort: "run" | "deadline";
}

export async function listOpenPromises(
  store: Store,
  caller: Caller | undefined,
  range: OpenRange,
  view: View,
): Promise<{ items: OpenPromiseBody[]; next?: string }> {
  const { name, definition, limit, after, sort } = range;
  const items: OpenPromiseBody[] = [];
  const enough = sort === "deadline" ? MAX_SORTED : limit + 1;
  const visible = new Map<RunNumber, boolean>();
  const seen = new Set<string>();
  let position = sort === "deadline" ? undefined : positionOf(after);
  while (items.length < enough) {
    const filter = { ...(name !== undefined && { name }), ...(definition !== undefined && { definition }) };
    const page = await store.listPromises({ ...filter, ...(position && { after: position }), limit: PAGE });
    await addVisible(store, caller, page.promises, visible);
    for (const one of page.promises) {
      const id = JSON.stringify([one.run, one.name, one.budget === undefined ? one.key : one.command]);
      // open-promise.P2
      if (visible.get(one.run) !== true || seen.has(id)) continue;
      seen.add(id);
      items.push(openBody(one, view));
    }
    if (page.next === undefined) break;
    position = page.next;
  }
  if (sort === "run") return pageOf(items, limit);
  const sorted = items.toSorted((a, b) => (a.deadline ?? "9").localeCompare(b.deadline ?? "9"));
  const from = Number(after ?? 0) || 0;
  return {
    items: sorted.slice(from, from + limit),
    ...(sorted.length > from + limit && { next: String(from + limit) }),
  };
}

function pageOf(items: readonly OpenPromiseBody[], limit: number): { items: OpenPromiseBody[]; next?: string } {
  const page = items.slice(0, limit);
  return { items: page, ...(items.length > limit && { next: page.at(-1)!.cursor }) };
}

function positionOf(cursor: string | undefined): { run: number; command: string } | undefined {
  const [, run, command] = /^(\d{1,16}):(.+)$/.exec(cursor ?? "") ?? [];
  return run === undefined || command === undefined ? undefined : { run: Number(run), command };
}

/** Tags are in the row of the run. */
async function addVisible(
  store: Store,
  caller: Caller | undefined,
  promises: readonly OpenPromise[],
  visible: Map<RunNumber, boolean>,
): Promise<void> {
  const unknown = [...new Map(promises.map((one) => [one.run, one])).values()].filter(({ run }) => !visible.has(run));
  if (caller?.tags === undefined)
    for (const { run, runId, definition } of unknown)
      visible.set(run, maySeeDefinition(caller, definition) && (caller?.run ?? runId) === runId);
  else
    for (const [index, record] of (await store.readRuns(unknown.map(({ run }) => run))).entries())
      visible.set(unknown[index]!.run, record !== undefined && maySeeRun(caller, record));
}

export function openBody(promise: OpenPromise, view: View): OpenPromiseBody {
  const { run, command, runId, definition, name, key, at, data, budget } = promise;
  const cursor = `${run}:${command}`;
  if (budget !== undefined) {
    const { reserve, state } = budget;
    const { cap, spent, reserved, lost } = state;
    const show = Object.fromEntries(
      Object.entries({ reserve, spent, reserved, lost }).map(([book, amounts]) => [book, shownCost(amounts, cap)]),
    );
    // Amounts are no payload of the run.
    return {
      ...{ run: runId, definition, kind: "budget", name: "budget", key: command, createdAt: isoOf(at), cursor },
      show: { cap: shownCost(cap, cap), ...show },
    };
  }
  const { show, timeout } = decodeData("PromiseCreated", data);
  return {
    run: runId,
    definition,
    kind: "promise",
    name,
    ...(key !== undefined && { key }),
    ...payloadFields(view, { show }),
    createdAt: isoOf(at),
    ...(timeout !== undefined && { deadline: isoOf(at + timeout) }),
    cursor,
  };
}

// ── history ──

const MAX_RUNS = 500;
const MAX_ENTRIES = 20_000;
const RUNS_PAGE = 100;
const JOURNAL_PAGE = 1_000;

export interface HistoryRange {
  readonly since: number;
  readonly limit: number;
  readonly definition?: string | undefined;
  readonly name?: string | undefined;
}

export interface SettledPromises {
  readonly items: readonly SettledPromiseBody[];
  readonly covers: { readonly since: string; readonly runs: number; readonly complete: boolean; readonly text: string };
}

/** promise-lists.P1 */
export async function listSettledPromises(
  store: Store,
  caller: Caller | undefined,
  { since, limit, definition, name }: HistoryRange,
  view: View,
): Promise<SettledPromises> {
  const found: SettledPromiseBody[] = [];
  let [runs, entries, isComplete] = [0, 0, true];
  const selection = definition === undefined ? {} : { definition };
  search: for (let before: RunNumber | undefined; ;) {
    const { records, next } = await listPage(store, caller, selection, RUNS_PAGE, before);
    for (const record of records) {
      // A run that ended before settled everything before.
      if (record.endedAt !== undefined && record.endedAt < since) continue;
      if (runs >= MAX_RUNS || entries >= MAX_ENTRIES) {
        isComplete = false;
        break search;
      }
      runs += 1;
      const read = await readSettled(store, record, since, MAX_ENTRIES - entries, view);
      entries += read.entries;
      isComplete &&= read.isWhole;
      found.push(...read.settled.filter((one) => name === undefined || one.name === name));
    }
    if (next === undefined) break;
    before = next;
  }
  const sorted = found.toSorted((a, b) => (a.settledAt < b.settledAt ? 1 : -1));
  const items = sorted.slice(0, limit);
  const complete = isComplete && sorted.length <= limit;
  const text = complete
    ? `Every promise that was settled since ${isoOf(since)}.`
    : `The newest ${items.length} of ${runs} runs that were read; there may be more.`;
  return { items, covers: { since: isoOf(since), runs, complete, text } };
}

interface ReadSettled {
  readonly settled: readonly SettledPromiseBody[];
  readonly entries: number;
  readonly isWhole: boolean;
}

async function readSettled(
  store: Store,
  record: RunRecord,
  since: number,
  maxEntries: number,
  view: View,
): Promise<ReadSettled> {
  const created = new Map<string, Entry>();
  const settled: SettledPromiseBody[] = [];
  let entries = 0;
  for (let seq = 0; seq < record.head && entries < maxEntries;) {
    const page = await store.readJournal(record.run, seq, JOURNAL_PAGE);
    entries += page.length;
    for (const entry of page) {
      if (entry.type === "PromiseCreated") created.set(entry.command, entry);
      const isEnd =
        entry.type === "PromiseResolved" || entry.type === "PromiseRejected" || entry.type === "PromiseTimedOut";
      if (!isEnd || entry.at < since) continue;
      const body = settledBody(record, entry, created.get(entry.command), view);
      if (body !== undefined) settled.push(body);
    }
    if (page.length === 0) break;
    seq = page.at(-1)!.seq;
  }
  return { settled, entries, isWhole: entries >= record.head };
}

/** Undefined for a wait for a signal. */
function settledBody(
  { id, definition }: RunRecord,
  entry: Entry,
  opened: Entry | undefined,
  view: View,
): SettledPromiseBody | undefined {
  const request = opened && decodeData("PromiseCreated", opened.data);
  if (request?.receives !== undefined) return undefined;
  const data = decodeData(entry.type as "PromiseResolved", entry.data) as Partial<
    EntryData["PromiseResolved"] & EntryData["PromiseRejected"]
  >;
  const promiseId = data.promiseId ?? request?.promiseId;
  if (promiseId === undefined) return undefined;
  const key = data.key ?? request?.key;
  const { error } = data;
  const { hidden = [], ...payloads } = payloadFields(view, { show: request?.show, value: data.value });
  const missing = [...hidden, ...(error !== undefined && !view.showsPayloads ? ["error"] : [])];
  return {
    run: id,
    definition,
    name: promiseNameOf({ promiseId, ...(key !== undefined && { key }) }),
    ...(key !== undefined && { key }),
    outcome:
      entry.type === "PromiseResolved" ? "resolved" : entry.type === "PromiseRejected" ? "rejected" : "timed_out",
    ...payloads,
    ...(error !== undefined && view.showsPayloads && { error: thrownErrorOf(error, view) }),
    ...(data.by !== undefined && { by: data.by }),
    ...(data.reason !== undefined && { reason: data.reason }),
    ...(opened !== undefined && { createdAt: isoOf(opened.at) }),
    settledAt: isoOf(entry.at),
    ...(missing.length > 0 && { hidden: missing }),
  };
}
