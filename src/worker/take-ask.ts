// What code asks for becomes entries and work of the next commit. Operations are not among it: they have no entry yet.

import { wholeText, type Arrival, type Told } from "../kernel/index.ts";
import {
  entryData,
  type Ask,
  type ChildAsk,
  type LimitWaitAsk,
  type OperationAsk,
  type SentByNode,
  type StepAsk,
  type StopNodesAsk,
  type TaskAsk,
} from "../workflow/index.ts";
import { added } from "./batch.ts";
import type { Draft } from "./draft.ts";
import type { HotRunHost } from "./hot-run-host.ts";

/** Answers how many tasks this worker claimed for itself. `told`: what the journal has of what the run was told (CP4). */
export function takeAsk(
  draft: Draft,
  host: HotRunHost,
  ask: Exclude<Ask, LimitWaitAsk | OperationAsk | StopNodesAsk>,
  told: () => readonly Told[],
): number {
  switch (ask.ask) {
    case "task":
      return takeTask(draft, host, ask);
    case "child":
      takeChild(draft, host, ask);
      return 0;
    case "timer": {
      const { seq, at } = draft.append("TimerStarted", ask.command, ask.data);
      draft.addTimer(ask.command, "TimerFired", "at" in ask.due ? ask.due.at : at + ask.due.afterMs, seq);
      return 0;
    }
    case "cancel-timer":
      draft.append("TimerCancelled", ask.command, ask.data);
      draft.drop(ask.command);
      return 0;
    case "promise": {
      const { seq, at } = draft.append("PromiseCreated", ask.command, ask.data);
      if (ask.timeoutMs !== undefined) draft.addTimer(ask.command, "PromiseTimedOut", at + ask.timeoutMs, seq);
      return 0;
    }
    case "step":
      takeStep(draft, ask, told);
      return 0;
    case "patch":
      draft.append("PatchMarked", "", ask.data);
      return 0;
    case "answer":
      draft.append(ask.type, ask.command, ask.data);
      return 0;
    case "child-message":
      draft.append(ask.type, ask.command, ask.data);
      draft.send(ask.childId, ask.arrival);
      return 0;
    case "state":
      draft.append(ask.type, ask.command, ask.data);
      return 0;
    case "send":
      send(draft, ask.command, ask.destination, ask.data);
      return 0;
    case "emit":
      draft.emit(ask.stream, ask.number, ask.data);
      return 0;
  }
}

function send(draft: Draft, command: string, destination: string, data: string): void {
  const { seq } = draft.append("MessageSent", command, data);
  draft.batch.sends = added(draft.batch.sends, { seq, destination });
}

/** What a node sends, in the commit that holds its result; `index` is that of the node. */
export function sendMessages(draft: Draft, index: number, messages: readonly SentByNode[]): void {
  for (const { command, destination, payload } of messages)
    send(draft, command, destination, entryData.messageSentData(index, destination, payload));
}

function takeStep(
  draft: Draft,
  { data, step, key, label, whole, written }: StepAsk,
  told: () => readonly Told[],
): void {
  const state = whole && wholeText(told(), whole);
  const { seq, at } = draft.append("StepCommitted", "", data);
  written(at);
  if (state !== undefined) draft.keptAt = seq;
  const { batch, chain } = draft;
  batch.checkpoints = added(batch.checkpoints, { step, seq, chain, key, label, state });
}

function takeTask(draft: Draft, host: HotRunHost, { command, data, task, priority, line }: TaskAsk): number {
  const { record, batch } = draft;
  const { seq } = draft.append("TaskScheduled", command, data);
  const claim = host.preclaimTask(task.name, line);
  const item = { item: command, kind: "task", name: task.name, priority, seq } as const;
  if (claim === undefined) {
    batch.items = added(batch.items, line === undefined ? item : { ...item, line });
    return 0;
  }
  batch.items = added(batch.items, { ...item, claim });
  batch.localItems = added(batch.localItems, {
    run: record.run,
    runId: record.id,
    generation: record.generation,
    item: command,
    kind: "task",
    name: task.name,
    token: claim.token,
    attempt: 0,
    failures: undefined,
    seq,
    data,
    suspicion: 0,
  });
  return 1;
}

function takeChild(draft: Draft, host: HotRunHost, ask: ChildAsk): void {
  const { batch } = draft;
  draft.append("ChildWorkflowInitiated", ask.command, ask.data);
  const taken: Arrival = {
    type: "ChildWorkflowFailed",
    target: ask.command,
    data: entryData.childIdTakenData(ask.childId, ask.command),
  };
  const claim = host.preclaimChild(ask);
  batch.children = added(batch.children, {
    run: host.newChild(ask),
    command: ask.command,
    detached: ask.detached,
    ...(claim && { claim }),
    taken,
  });
}
