// Checkpoints: the committed steps of a graph, with the nodes of each, and the state after a step.
//
// checkpoints.K1. A fork has the steps of its origin before the one it starts from. The nodes of that one ran in the origin, too.

import { encode, RepriseError } from "../../base/index.ts";
import type { CheckpointBody, StateBody } from "../../contract/index.ts";
import { attemptOf, changesOf, readLineage, type LineageRange } from "../../explain/index.ts";
import { decodeData, type Entry, type RunNumber, type RunRecord, type Store } from "../../kernel/index.ts";
import type { ServerHost } from "../host.ts";
import { accessOf, isoOf, shownPayload, type View } from "./view.ts";

const PAGE = 500;

export async function listCheckpoints(
  store: Store,
  record: RunRecord,
  limit: number,
  after: string | undefined,
): Promise<{ items: CheckpointBody[]; next?: string }> {
  const { ranges } = await readLineage(store, record);
  const items: CheckpointBody[] = [];
  let last = after === undefined ? -1 : stepOf(after);
  for (const [index, range] of ranges.entries()) {
    if (last >= range.upTo) continue;
    const from = Math.max(last + 1, range.from);
    for (const step of await readSteps(store, range, ranges[index - 1], from, limit + 1 - items.length)) {
      items.push(step);
      last = step.step;
    }
    if (items.length > limit) break;
  }
  const page = items.slice(0, limit);
  return { items: page, ...(items.length > limit && { next: String(page.at(-1)!.step) }) };
}

export async function readCheckpoint(store: Store, record: RunRecord, text: string): Promise<CheckpointBody> {
  const step = stepOf(text);
  const { ranges } = await readLineage(store, record);
  const index = ranges.findLastIndex(({ from }) => step >= from);
  const [found] = await readSteps(store, ranges[index]!, ranges[index - 1], step, 1);
  if (found?.step === step) return found;
  throw new RepriseError("CHECKPOINT_NOT_FOUND", `Run ${record.id} has no committed checkpoint of step ${step}.`, {
    details: { run: record.id, step },
  });
}

function stepOf(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new RepriseError("BAD_FORMAT", `Expected the number of a step, got ${text.slice(0, 40)}.`, {
    details: { status: 400 },
  });
}

/** Some steps of a range, with what ran in each. */
async function readSteps(
  store: Store,
  range: LineageRange,
  origin: LineageRange | undefined,
  from: number,
  limit: number,
): Promise<readonly CheckpointBody[]> {
  const steps: CheckpointBody[] = [];
  const previous = from === 0 ? undefined : await store.findCheckpoint(range.run, from - 1, false);
  let seq = previous?.step === from - 1 ? previous.seq : 0;
  let ran: Entry[] = [];
  for (;;) {
    const page = await store.readJournal(range.run, seq, PAGE);
    for (const entry of page) {
      seq = entry.seq;
      if (entry.type === "NodeCompleted" || entry.type === "NodeFailed") ran.push(entry);
      if (entry.type !== "StepCommitted") continue;
      const { step, key, label, delta, frontier } = decodeData("StepCommitted", entry.data);
      const nodes = ran.filter(({ command }) => command.startsWith(`Node(${step}.`));
      ran = [];
      if (step < from) continue;
      if (step > range.upTo) return steps;
      const isFork = origin !== undefined && step === range.from;
      const own = isFork ? await nodesOf(store, origin.run, step) : nodes;
      steps.push({
        run: range.id,
        step,
        at: isoOf(entry.at),
        ...(label !== undefined && { label }),
        nodes: own.map(nodeBody),
        changed: changesOf(delta).map(({ channel }) => channel),
        next: frontier.map(({ node }) => node),
        key,
      });
      if (steps.length === limit) return steps;
    }
    if (page.length < PAGE) return steps;
  }
}

/** checkpoints.K1 */
async function nodesOf(store: Store, run: RunNumber, step: number): Promise<readonly Entry[]> {
  if (step === 0) return [];
  const before = await store.findCheckpoint(run, step - 1, false);
  const at = await store.findCheckpoint(run, step, false);
  if (before === undefined || at?.step !== step) return [];
  const entries = await store.readJournal(run, before.seq, at.seq - before.seq);
  return entries.filter(({ type, command }) => type === "NodeCompleted" && command.startsWith(`Node(${step}.`));
}

function nodeBody({ command, data, tookMs }: Entry): CheckpointBody["nodes"][number] {
  const decoded = decodeData("NodeCompleted", data);
  return {
    name: decoded.operationName ?? command,
    command,
    ...(tookMs !== undefined && { tookMs: Math.round(tookMs) }),
    attempts: attemptOf(decoded),
  };
}

/** The state after a step, and the values of what it changed before it. */
export async function readState(
  host: ServerHost,
  record: RunRecord,
  view: View,
  step: number | undefined,
  label: string | undefined,
): Promise<StateBody> {
  const run = accessOf(host).handle(record);
  const at =
    label === undefined ? (step ?? (await newestStep(host.store, record))) : (await run.checkpoint({ label })).step;
  const state = (await run.stateAt(at)) as Readonly<Record<string, unknown>>;
  const before = at === 0 ? {} : ((await run.stateAt(at - 1)) as Readonly<Record<string, unknown>>);
  const changed = Object.keys(state).filter(
    (name) => !Object.hasOwn(before, name) || encode(before[name]) !== encode(state[name]),
  );
  const shown = (values: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> =>
    Object.fromEntries(
      names.filter((name) => Object.hasOwn(values, name)).map((name) => [name, shownPayload(view, values[name])]),
    );
  return {
    step: at,
    state: shown(state, Object.keys(state)),
    ...(at > 0 && { before: shown(before, changed) }),
    changed,
  };
}

async function newestStep(store: Store, { run }: RunRecord): Promise<number> {
  return (await store.findCheckpoint(run, Number.MAX_SAFE_INTEGER, false))?.step ?? 0;
}
