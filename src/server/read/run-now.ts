// Run now: what a run does now in one sentence, for a row of a list. A bounded number of reads per run.

import { formatMs, shellWord } from "../../base/index.ts";
import type { RunNow } from "../../contract/index.ts";
import { explainRun } from "../../explain/index.ts";
import {
  decodeData,
  hasEnded,
  type AttemptRecord,
  type Entry,
  type RunRecord,
  type RunWork,
  type Store,
} from "../../kernel/index.ts";
import { errorLine } from "../../picture/index.ts";
import { budgetBody } from "./budget-body.ts";
import { reasonBody } from "./reason-body.ts";
import type { View } from "./view.ts";

const MAX_ATTEMPTS = 8;
/** The entries among which the last execution is looked for. */
const LAST_ENTRIES = 10;

export async function readRunNow(store: Store, record: RunRecord, view: View): Promise<RunNow> {
  const { id, status, run, head } = record;
  const tail = head === 0 ? [] : await store.readJournal(run, Math.max(0, head - LAST_ENTRIES), LAST_ENTRIES);
  const work = hasEnded(status) ? undefined : await store.readRunWork(run);
  const attempts = await attemptsOf(store, record, tail, work);
  const budget = await ownBudget(store, record);
  const made = { run: id, status, attempts, ...(budget && { budget }) };
  if (hasEnded(status)) return { ...made, ...endOf(record, tail.at(-1), view) };
  const [first] = (await explainRun(store, record)).waitsFor;
  const progress = record.kind === "flow" ? await progressOf(store, record, work) : undefined;
  if (first === undefined) return { ...made, text: `The run is ${status}.`, ...(progress && { progress }) };
  const { reason, text, next } = reasonBody(first, view, id);
  return {
    ...made,
    text,
    reason,
    ...(next[0] !== undefined && { command: next[0] }),
    ...(progress && { progress }),
  };
}

/** A run that pays from the budget of another one has no costs of its own. */
async function ownBudget(store: Store, { id, budget }: RunRecord): Promise<RunNow["budget"]> {
  const reading = budget === undefined ? undefined : await store.readBudget(budget);
  if (reading === undefined || reading.owner !== id) return undefined;
  const { spent, cap } = budgetBody(reading);
  return { spent, cap };
}

function endOf(
  { id, status, createdAt, endedAt = createdAt, errorCode }: RunRecord,
  last: Entry | undefined,
  view: View,
): Pick<RunNow, "text" | "command"> {
  const took = formatMs(Math.max(0, endedAt - createdAt));
  if (status === "completed") return { text: `Completed in ${took}.` };
  if (status === "continued") return { text: `Continued as the next generation after ${took}.` };
  if (status === "cancelled") {
    const { reason, terminated } = last?.type === "RunCancelled" ? decodeData(last.type, last.data) : {};
    const how = terminated === true ? "Terminated" : "Canceled";
    return { text: `${how} after ${took}${reason === undefined ? "" : `: ${view.redaction.text(reason)}`}.` };
  }
  const command = `reprise retry ${shellWord(id)}`;
  if (last?.type !== "RunFailed" || !view.showsPayloads)
    return { text: `Failed after ${took}${errorCode === undefined ? "" : ` with ${errorCode}`}.`, command };
  const { error, at } = decodeData(last.type, last.data);
  const place = typeof at === "string" ? ` at ${at}` : "";
  return { text: `Failed after ${took}${place}: ${errorLine(error, view)}`, command };
}

/** The executions of the step that runs or waits for a worker; of a run without one, of the step that ended last. */
async function attemptsOf(
  store: Store,
  { run, lostTurns }: RunRecord,
  tail: readonly Entry[],
  work: RunWork | undefined,
): Promise<RunNow["attempts"]> {
  const open = work?.items.find(({ kind, state }) => (kind === "task" || kind === "node") && state !== "admitted");
  const last = tail.findLast(({ tookMs, type }) => tookMs !== undefined || type.endsWith("Retried"));
  const step = open?.item ?? last?.command;
  if (step === undefined) return [];
  const recorded = await store.readAttempts(run, step);
  const turns = lostTurns === 0 || open !== undefined ? [] : await store.readAttempts(run, "");
  const lost =
    open === undefined && last !== undefined ? turns.filter(({ at }) => at <= (last.startedAt ?? last.at)) : [];
  const lostCount = Math.max(0, (last?.execution ?? 1) - 1 - recorded.length);
  const before = [...lost.slice(Math.max(0, lost.length - lostCount)), ...recorded].toSorted((a, b) => a.at - b.at);
  const outcomes: RunNow["attempts"][number][] = before.map(({ outcome }: AttemptRecord) => outcome);
  if (open?.state === "leased") outcomes.push("running");
  if (open === undefined && last !== undefined)
    outcomes.push(...(last.type.endsWith("Completed") ? (["completed"] as const) : (["failed"] as const)));
  return outcomes.slice(-MAX_ATTEMPTS);
}

/** Of the spread that is in progress. */
async function progressOf(
  store: Store,
  { run }: RunRecord,
  work: RunWork | undefined,
): Promise<RunNow["progress"] | undefined> {
  const spread = (await store.readReadiness(run)).find(
    ({ queued, completed, required }) => queued !== undefined && completed < required,
  );
  if (spread === undefined) return undefined;
  const running = (work?.items ?? []).filter(
    ({ item, state }) => state === "leased" && item.startsWith(`${spread.node}[`),
  ).length;
  return { done: spread.completed, total: spread.required, failed: 0, running };
}
