// Interpreter: runs a graph step by step, as durable code of its own kind.
//
// I1. A step runs the items of its frontier (scheduler.ts). Each item sees the state before the step.
// I2. When all have ended, their changes are folded in the order written (or by order key), then the folded state decides
//     where the run goes on. Nothing here depends on the order in which nodes ended.
// I3. Every step leaves one checkpoint. Its key is that of seed 003; a step whose checkpoint is in the journal must give
//     the same key again.
// I4. A node that fails for good ends the run after its siblings have ended: with the error first in fold order, and
//     without a checkpoint (G12).

import { encode, RepriseError, type EpochMs } from "../base/index.ts";
import { isWholeDue, type Delta } from "../kernel/index.ts";
import type { Execution, RecordedEntry } from "../workflow/index.ts";
import { stopAtGoneNode, stopAtGoneResult } from "./changed-code.ts";
import type { Channels } from "./channel.ts";
import type { GraphBody } from "./definition.ts";
import { saidBy } from "./fold-faults.ts";
import { idempotencyKeyOf } from "./idempotency-key.ts";
import { storedItem, type Item } from "./item.ts";
import { startNode, type NodeResult } from "./node-run.ts";
import { compareItems, ROOT_PATH } from "./order-key.ts";
import { positionAfter } from "./restore.ts";
import { route, type WaitingJoin } from "./route.ts";
import { Scheduler, type Settled } from "./scheduler.ts";
import { GraphState, type Change } from "./state.ts";

/** Where a run stands between two steps. */
export interface Position {
  /** The last step that is complete; 0 before the first. */
  readonly step: number;
  readonly state: GraphState;
  readonly items: readonly Item[];
  readonly waiting: readonly WaitingJoin[];
  /** How long the entries are together since the whole state was kept. */
  readonly unkept: number;
  /** When it was written, where it was read from the journal. */
  readonly at?: EpochMs;
}

/** How an item is set going; a replay has its own way. */
export type StartNode = typeof startNode;

export async function runGraph(
  execution: Execution,
  body: GraphBody,
  from: Position,
  startItem: StartNode = startNode,
): Promise<unknown> {
  const scheduler = new Scheduler(execution, body);
  let position = from;
  if (from.at !== undefined) execution.steppedAt = from.at;
  try {
    while (position.items.length > 0) {
      if (position.step >= body.maxSteps) throw tooManySteps(body, position);
      position = await runStep(execution, body, scheduler, position, startItem);
      scheduler.completed();
    }
  } finally {
    scheduler.ended();
  }
  const { values } = position.state;
  if (body.output === undefined) return values;
  try {
    return body.output(values);
  } catch (error) {
    throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: its output threw: ${saidBy(error)}`, { cause: error });
  }
}

function tooManySteps({ name, maxSteps }: GraphBody, { items }: Position): RepriseError {
  const next = items.map(({ node }) => node);
  const named = [...new Set(next)].slice(0, 5).join(", ");
  return new RepriseError(
    "MAX_STEPS_EXCEEDED",
    `Graph ${name} took ${maxSteps} steps without coming to its end; next would come: ${named}. Look for a loop that never ends, or raise maxSteps and retry the run.`,
    { details: { steps: maxSteps, next } },
  );
}

/** Step 0: the input, folded into the first values, and the items START leads to. */
export function begin(execution: Execution, body: GraphBody, input: unknown): Position {
  const { state } = GraphState.initial(body.channels).fold(body.name, body.channels, [(input ?? {}) as Change]);
  const start = { node: "", path: ROOT_PATH, goto: undefined };
  // CP2
  const delta: Delta = { set: state.values };
  const routed = route(body, state.values, [start], []);
  return commitStep(execution, {
    step: 0,
    state,
    delta,
    ...routed,
    label: undefined,
    unkept: 0,
    channels: body.channels,
  });
}

async function runStep(
  execution: Execution,
  body: GraphBody,
  scheduler: Scheduler,
  position: Position,
  startItem: StartNode,
): Promise<Position> {
  const step = position.step + 1;
  const { items, state } = position;
  const isGone = stopAtGoneNode(execution, body, step, items, position.waiting);
  if (isGone !== undefined) return isGone;
  const results = await scheduler.run(step, items, {
    start: (item, index, freedAt) => startItem(execution, body, step, index, item, state, freedAt),
    stop: (others, failed) => execution.nodes?.stop(others, stoppedBecause(failed)),
  });
  const order = items.map((_, index) => index);
  if (body.fold === "order-key") order.sort((a, b) => compareItems(items[a]!, items[b]!));
  throwFirst(order.map((index) => results[index]));
  const done = results.map((result) => (result as PromiseFulfilledResult<NodeResult>).value);
  const isUnknown = stopAtGoneResult(execution, body, step, items, done);
  if (isUnknown !== undefined) return isUnknown;
  const folded = state.fold(
    body.name,
    body.channels,
    order.map((index) => done[index]!.change),
    (index) => items[order[index]!]!.node,
  );
  const parents = items.map(({ node, path }, index) => ({ node, path, goto: done[index]!.goto }));
  const routed = route(
    body,
    folded.state.values,
    order.map((index) => parents[index]!),
    position.waiting,
  );
  const label = done.findLast((result) => result.label !== undefined)?.label;
  return commitStep(execution, {
    step,
    ...folded,
    ...routed,
    label,
    unkept: position.unkept,
    before: state,
    channels: body.channels,
  });
}

/** I4. In fold order; one that was only told to stop is not what the step failed of. */
function throwFirst(results: readonly Settled[]): void {
  const failed = results.filter((result) => result?.status === "rejected");
  const first = failed.find(({ reason }) => !isStopped(reason)) ?? failed[0];
  if (first !== undefined) throw first.reason;
}

const STOPPED = "NODE_STOPPED";

function stoppedBecause(failed: string): RepriseError {
  return new RepriseError(STOPPED, `The node ${failed} of the same step has failed, so this one was told to stop.`);
}

function isStopped(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === STOPPED;
}

interface Finished {
  readonly step: number;
  readonly state: GraphState;
  readonly delta: Delta;
  readonly items: readonly Item[];
  readonly waiting: readonly WaitingJoin[];
  readonly label: string | undefined;
  readonly unkept: number;
  readonly channels: Channels;
  /** Undefined for step 0. */
  readonly before?: GraphState;
}

/** I3 */
function commitStep(execution: Execution, finished: Finished): Position {
  const { step, state, delta, items, waiting, label } = finished;
  const parts = state.parts();
  const key = idempotencyKeyOf(execution.facts.id, step, items, parts);
  // Keys in the order they are written in, which spares sorting them.
  const data = stepText(execution, items.length, {
    delta,
    frontier: items.map(storedItem),
    key,
    ...(label !== undefined && { label }),
    step,
    ...(waiting.length > 0 && { waiting }),
  });
  const unkept = finished.unkept + data.length;
  const isWhole = isWholeDue(step, unkept, state.length);
  const recorded = execution.stepOf(step);
  execution.steppedAt = recorded?.at;
  const written = (at: EpochMs): void => void (execution.steppedAt = at);
  if (recorded === undefined)
    execution.asks.push({ ask: "step", data, step, key, label, whole: isWhole ? parts : undefined, written });
  else if (recorded.data["key"] !== key) return otherStep(execution, finished, recorded);
  return { step, state, items, waiting, unkept: isWhole ? 0 : unkept };
}

/** What does not fit into one entry is told by what it is. */
function stepText({ body }: Execution, items: number, entry: Readonly<Record<string, unknown>>): string {
  try {
    return encode(entry);
  } catch (error) {
    const { code, message, details } = error as RepriseError;
    if (code !== "PAYLOAD_TOO_LARGE") throw error;
    throw new RepriseError(
      code,
      `Step ${String(entry["step"])} of graph ${body.name} leads to ${items} items and cannot be kept: ${message} Spread groups of items instead of single ones, or let the nodes of one step lead to fewer.`,
      { ...(details && { details }) },
    );
  }
}

/** I3. What was recorded goes on where a replay tolerates the difference; elsewhere nothing does. */
function otherStep(
  execution: Execution,
  { step, items, state, before, channels }: Finished,
  recorded: RecordedEntry,
): Position {
  const frontier = encode(items.map(storedItem));
  const then = encode(recorded.data["frontier"]);
  const differs = frontier === then ? "state" : "frontier";
  const kept = positionAfter(channels, before?.texts ?? new Map(), recorded);
  execution.violate({
    message: `Checkpoint mismatch at step ${step}: another ${differs} than the journal has`,
    expected: differs === "state" ? state.values : items.map(({ node }) => node),
    actual: differs === "state" ? kept.state.values : kept.items.map(({ node }) => node),
    where: `step ${step}`,
    seq: recorded.seq,
  });
  return kept;
}
