// Interpreter: runs a graph step by step. It drives the execution in place of a workflow function.
//
// interpreter.I1. A step runs the items of its frontier (scheduler.ts). Each item sees the state before the step.
// interpreter.I2. When all items have ended, their changes are folded in written order (or by order key). The folded state
//   then decides the next items. The order in which nodes ended has no effect.
// interpreter.I3. Every step commits one checkpoint, with the key of seed 003. A step whose checkpoint is in the journal
//   must produce the same key again.
// interpreter.I4. A node that fails its last attempt fails the run once its siblings have ended. The first error in fold
//   order counts, and the step commits no checkpoint (rules.G12).
// interpreter.I5. Steps are consecutive from 0: step n+1 starts from the state that step n committed.

import { encode, invariant, RepriseError, type EpochMs } from "../base/index.ts";
import { isSnapshotDue, type DecodedEntry, type Delta } from "../kernel/index.ts";
import type { Execution } from "../workflow/index.ts";
import { stopAtMissingNode, stopAtUnknownResult } from "./changed-code.ts";
import type { Channels } from "./channel.ts";
import type { GraphBody } from "./definition.ts";
import { messageOf } from "./fold-errors.ts";
import { checkpointKeyOf } from "./checkpoint-key.ts";
import { storedItem, type StepItem } from "./step-item.ts";
import { stepText, type StepParts } from "./step-text.ts";
import { resultOf, startNode } from "./node-run.ts";
import { compareItems, ROOT_PATH } from "./order-key.ts";
import { positionAfter } from "./restore.ts";
import { route, type WaitingJoin } from "./route.ts";
import { Scheduler, type ItemResult, type StartNode } from "./scheduler.ts";
import { GraphState, type StateChange } from "./state.ts";

/** The position of a run between two steps. */
export interface Position {
  /** The last committed step; 0 before the first. */
  readonly step: number;
  readonly state: GraphState;
  readonly items: readonly StepItem[];
  readonly waiting: readonly WaitingJoin[];
  /** The total length of the step entries since the last snapshot. */
  readonly lengthSinceSnapshot: number;
  /** When its entry was written, if it was read from the journal. */
  readonly at?: EpochMs;
}

export async function runGraph(
  execution: Execution,
  body: GraphBody,
  from: Position,
  startItem: StartNode = startNode,
): Promise<unknown> {
  const scheduler = new Scheduler(execution, body, {
    start: startItem,
    stop: (others, failed) => execution.nodes?.stop(others, stoppedBecause(failed)),
  });
  let position = from;
  if (from.at !== undefined) execution.steppedAt = from.at;
  try {
    while (position.items.length > 0) {
      if (position.step >= body.maxSteps) throw tooManySteps(body, position);
      const { items, state, waiting } = position;
      const step = position.step + 1;
      const isGone = stopAtMissingNode(execution, body, step, items, waiting);
      if (isGone !== undefined) await isGone;
      await scheduler.run(step, items, state);
      const next = endStep(execution, body, position, scheduler.takeResults());
      // A promise of a step that the changed code cannot end; it never settles.
      position = next instanceof Promise ? await next : next;
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
    throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: its output function threw: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function tooManySteps({ name, maxSteps }: GraphBody, { items }: Position): RepriseError {
  const next = items.map(({ node }) => node);
  const named = [...new Set(next)].slice(0, 5).join(", ");
  return new RepriseError(
    "MAX_STEPS_EXCEEDED",
    `Graph ${name} did not end within its maxSteps of ${maxSteps}; the next nodes are: ${named}. Look for an endless loop, or raise maxSteps and retry the run.`,
    { details: { steps: maxSteps, next } },
  );
}

/** Step 0: the input folded into the initial values, and the items that START leads to. */
export function beginGraph(execution: Execution, body: GraphBody, input: unknown): Position {
  const { state } = GraphState.initial(body.channels).fold(body.name, body.channels, [(input ?? {}) as StateChange]);
  const start = { node: "", path: ROOT_PATH, goto: undefined };
  // checkpoint.C2
  const delta: Delta = { set: state.values };
  const routed = route(body, state.values, [start], []);
  return commitStep(execution, {
    step: 0,
    state,
    delta,
    ...routed,
    label: undefined,
    lengthSinceSnapshot: 0,
    channels: body.channels,
  });
}

/** interpreter.I2 */
function endStep(
  execution: Execution,
  body: GraphBody,
  position: Position,
  results: readonly ItemResult[],
): Position | Promise<never> {
  const step = position.step + 1;
  const { items, state } = position;
  invariant(results.length === items.length, "A step has one result per item.");
  const order = foldOrder(body, items);
  throwFirst(inOrder(results, order));
  const done = results.map((result) => resultOf((result as PromiseFulfilledResult<unknown>).value));
  const isUnknown = stopAtUnknownResult(execution, body, step, items, done);
  if (isUnknown !== undefined) return isUnknown;
  const folded = state.fold(
    body.name,
    body.channels,
    inOrder(done, order).map(({ change }) => change),
    (index) => items[order === undefined ? index : order[index]!]!.node,
  );
  const parents = items.map(({ node, path }, index) => ({ node, path, goto: done[index]!.goto }));
  const routed = route(body, folded.state.values, inOrder(parents, order), position.waiting);
  return commitStep(execution, {
    step,
    state: folded.state,
    delta: folded.delta,
    items: routed.items,
    waiting: routed.waiting,
    label: done.findLast((result) => result.label !== undefined)?.label,
    lengthSinceSnapshot: position.lengthSinceSnapshot,
    before: state,
    channels: body.channels,
  });
}

/** interpreter.I2. The indexes of the items; undefined for written order. */
function foldOrder({ fold }: GraphBody, items: readonly StepItem[]): readonly number[] | undefined {
  if (fold !== "order-key" || items.length < 2) return undefined;
  return items.map((_, index) => index).sort((a, b) => compareItems(items[a]!, items[b]!));
}

function inOrder<T>(list: readonly T[], order: readonly number[] | undefined): readonly T[] {
  return order === undefined ? list : order.map((index) => list[index]!);
}

/** interpreter.I4. A node that was aborted because of another one is not the cause. */
function throwFirst(results: readonly ItemResult[]): void {
  if (!results.some((result) => result?.status === "rejected")) return;
  const failed = results.filter((result) => result?.status === "rejected");
  const first = failed.find(({ reason }) => !isStopped(reason)) ?? failed[0]!;
  throw first.reason;
}

const STOPPED = "NODE_STOPPED";

function stoppedBecause(failed: string): RepriseError {
  return new RepriseError(STOPPED, `Node ${failed} of the same step failed, so this node was aborted.`);
}

function isStopped(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === STOPPED;
}

interface FinishedStep {
  readonly step: number;
  readonly state: GraphState;
  readonly delta: Delta;
  readonly items: readonly StepItem[];
  readonly waiting: readonly WaitingJoin[];
  readonly label: string | undefined;
  readonly lengthSinceSnapshot: number;
  readonly channels: Channels;
  /** Undefined for step 0. */
  readonly before?: GraphState;
}

/** interpreter.I3 */
function commitStep(execution: Execution, finished: FinishedStep): Position {
  const { step, state, delta, items, waiting, label } = finished;
  const parts = state.parts();
  const key = checkpointKeyOf(execution.identity.id, step, items, parts);
  const data = textOf(execution, { step, delta, texts: state.texts, items, waiting, key, label });
  const unkept = finished.lengthSinceSnapshot + data.length;
  const isWhole = isSnapshotDue(step, unkept, state.texts);
  const recorded = execution.stepOf(step);
  invariant(recorded === undefined || recorded.data.step === step, "A recorded step is found by its own number.");
  execution.steppedAt = recorded?.at;
  const written = (at: EpochMs): void => void (execution.steppedAt = at);
  if (recorded === undefined)
    execution.requests.push({ kind: "step", data, step, key, label, whole: isWhole ? parts : undefined, written });
  else if (recorded.data.key !== key) return reportOtherStep(execution, finished, recorded);
  return { step, state, items, waiting, lengthSinceSnapshot: isWhole ? 0 : unkept };
}

/** Names the step in the error for an entry that is too large. */
function textOf({ body }: Execution, parts: StepParts): string {
  try {
    return stepText(parts);
  } catch (error) {
    const { code, message, details } = error as RepriseError;
    if (code !== "PAYLOAD_TOO_LARGE") throw error;
    throw new RepriseError(
      code,
      `Step ${parts.step} of graph ${body.name} leads to ${parts.items.length} items and cannot be stored: ${message} Spread groups of items instead of single items, or lead to fewer nodes in one step.`,
      { ...(details && { details }) },
    );
  }
}

/** interpreter.I3. If a replay tolerates the difference, it continues with the recorded step; otherwise the run stops. */
function reportOtherStep(
  execution: Execution,
  { step, items, state, before, channels }: FinishedStep,
  recorded: DecodedEntry<"StepCommitted">,
): Position {
  const frontier = encode(items.map(storedItem));
  const then = encode(recorded.data.frontier);
  const differs = frontier === then ? "state" : "frontier";
  const kept = positionAfter(channels, before?.texts ?? new Map(), recorded);
  execution.violate({
    message: `the journal recorded another ${differs} than the code now computes (at step ${step})`,
    expected: differs === "state" ? state.values : items.map(({ node }) => node),
    actual: differs === "state" ? kept.state.values : kept.items.map(({ node }) => node),
    where: `step ${step}`,
    seq: recorded.seq,
  });
  return kept;
}
