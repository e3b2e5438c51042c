// Handles the commands of workflow code: each becomes entries and work of the next commit. Operations are handled elsewhere
// (run-operation.ts), because they have no entry before they end.

import {
  snapshotText,
  spanIdOf,
  withTrace,
  type Arrival,
  type DeliveredMessage,
  type OpenSpan,
} from "../kernel/index.ts";
import {
  entryData,
  type CommandRequest,
  type ChildRequest,
  type LimitWaitRequest,
  type OperationRequest,
  type SentNodeMessage,
  type StepRequest,
  type StopNodesRequest,
  type TaskRequest,
} from "../workflow/index.ts";
import { childRun } from "../process/index.ts";
import { appended } from "./pending-commit.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { HotRunParts } from "./hot-run.ts";

export interface KnownToRun {
  /** The messages that a full checkpoint keeps (checkpoint.C4). */
  deliveredMessages(): readonly DeliveredMessage[];
  /** The promises whose value is journaled. The code may not have received it yet. */
  readonly settledPorts: ReadonlySet<string> | undefined;
}

/** Returns how many tasks the run claimed eagerly. */
export function handleCommand(
  journal: JournalWriter,
  parts: HotRunParts,
  request: Exclude<CommandRequest, LimitWaitRequest | OperationRequest | StopNodesRequest>,
  known: KnownToRun,
): number {
  switch (request.kind) {
    case "task":
      return addTask(journal, parts, request);
    case "child":
      addChild(journal, parts, request);
      return 0;
    case "timer": {
      const { seq, at } = journal.append("TimerStarted", request.command, request.data, undefined, request.since);
      journal.addTimer(
        request.command,
        "TimerFired",
        "at" in request.due ? request.due.at : at + request.due.afterMs,
        seq,
      );
      return 0;
    }
    case "cancel-timer":
      journal.append("TimerCancelled", request.command, request.data);
      journal.drop(request.command);
      return 0;
    case "cancel-task":
      journal.append(request.type, request.command, request.data);
      if (request.type === "TaskCancelled") journal.drop(request.command);
      return 0;
    case "promise": {
      const { command, timeoutMs, since, open } = request;
      const { seq, at } = journal.append("PromiseCreated", command, request.data, undefined, since);
      if (timeoutMs !== undefined) journal.addTimer(command, "PromiseTimedOut", at + timeoutMs, seq);
      if (open !== undefined && known.settledPorts?.has(open.promiseId) !== true)
        journal.openPromise({ command, name: open.name, key: open.key, seq, at });
      return 0;
    }
    case "step":
      addStep(journal, request, known);
      return 0;
    case "patch":
      journal.append("PatchMarked", "", request.data);
      return 0;
    case "input-change":
      journal.append("InputChanged", request.command, request.data);
      parts.log.inputChanged(journal.record, request.command, request.message);
      return 0;
    case "answer":
      journal.append(request.type, request.command, request.data);
      return 0;
    case "child-message":
      journal.append(request.type, request.command, request.data);
      journal.send(request.childId, request.arrival);
      return 0;
    case "settle":
      journal.append("SettleRequested", request.command, request.data);
      journal.next.settlements = appended(journal.next.settlements, request.settlement);
      return 0;
    case "state":
      journal.append(request.type, request.command, request.data);
      return 0;
    case "send":
      addMessage(journal, request.command, request.destination, request.data);
      return 0;
    case "emit":
      journal.emit({ stream: request.stream, number: request.number, data: request.data });
      return 0;
  }
}

function addMessage(journal: JournalWriter, command: string, destination: string, data: string): void {
  const span = journal.begin("send", destination, { command });
  const { seq } = journal.append("MessageSent", command, sent(journal, data, span));
  journal.next.outgoing = appended(journal.next.outgoing, span ? { seq, destination, span } : { seq, destination });
}

/** Adds the messages of a node to the commit of its result; `index` is the node's. */
export function addMessages(journal: JournalWriter, index: number, messages: readonly SentNodeMessage[]): void {
  for (const { command, destination, payload } of messages)
    addMessage(journal, command, destination, entryData.messageSentData(index, destination, payload));
}

/** The data of what a span sends: its receiver links to it. */
function sent({ trace }: JournalWriter, data: string, span: OpenSpan | undefined): string {
  if (span === undefined) return data;
  span.finish();
  const { parent, state } = trace ?? span.trace;
  return withTrace(data, { parent, span: spanIdOf(span.trace), ...(state !== undefined && { state }) });
}

function addStep(
  journal: JournalWriter,
  { data, step, key, label, whole, written }: StepRequest,
  known: KnownToRun,
): void {
  const state = whole && snapshotText(known.deliveredMessages(), whole);
  const { seq, at } = journal.append("StepCommitted", "", data);
  written(at);
  if (state !== undefined) {
    journal.checkpointSeq = seq;
    journal.size = state.length;
  }
  const { next, chain } = journal;
  next.checkpoints = appended(next.checkpoints, { step, seq, chain, key, label, state });
}

function addTask(journal: JournalWriter, parts: HotRunParts, request: TaskRequest): number {
  const { command, task, priority, slot } = request;
  const { record, next } = journal;
  const span = journal.begin("send", slot?.queue ?? task.name, { command, queue: slot?.queue });
  const data = sent(journal, request.data, span);
  const { seq } = journal.append("TaskScheduled", command, data);
  const claim = parts.eagerClaims.claimTask(task.name, slot, data);
  const plain = { item: command, kind: "task", name: task.name, priority, seq } as const;
  const item = span === undefined ? plain : { ...plain, span };
  if (claim === undefined) {
    next.items = appended(next.items, slot === undefined ? item : { ...item, slot });
    return 0;
  }
  next.items = appended(next.items, { ...item, claim });
  next.localItems = appended(next.localItems, {
    run: record.run,
    runId: record.id,
    definition: record.definition,
    generation: record.generation,
    item: command,
    kind: "task",
    name: task.name,
    token: claim.token,
    attempt: 0,
    execution: 1,
    failures: undefined,
    seq,
    data,
    suspicion: 0,
    budget: record.budget,
  });
  return 1;
}

function addChild(journal: JournalWriter, parts: HotRunParts, request: ChildRequest): void {
  journal.append("ChildWorkflowInitiated", request.command, request.data);
  const taken: Arrival = {
    type: "ChildWorkflowFailed",
    target: request.command,
    data: entryData.childIdTakenData(request.childId, request.command),
  };
  const claim = parts.eagerClaims.claimChild(request);
  journal.next.children = appended(journal.next.children, {
    run: childRun(parts.options, request, journal.trace),
    command: request.command,
    detached: request.detached,
    ...(claim && { claim }),
    taken,
  });
}
