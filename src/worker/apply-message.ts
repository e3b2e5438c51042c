// Applies inbox messages: appends each to the journal, and closes the waits that it settles.

import type { EpochMs } from "../base/index.ts";
import {
  decodeData,
  isDeliveredMessage,
  type DeliveredMessage,
  type Delivery,
  type EntryType,
} from "../kernel/index.ts";
import { entryData, type Execution, type Wait } from "../workflow/index.ts";
import type { EndedExecution, JournalWriter } from "./journal-writer.ts";

export function applyPort(
  journal: JournalWriter,
  execution: Execution,
  type: EntryType,
  port: string,
  data: string,
): void {
  const waits = execution.waits.openOn(port);
  journal.appendDelivery(type, waits[0]?.command ?? "", data, decodeData(type, data));
  for (const { command, timed } of waits) {
    execution.close(command);
    if (timed) journal.drop(command);
  }
  closePromises(journal, execution, waits);
  // Nodes that run again and have not requested it yet will find it settled.
  for (const command of execution.commands.waitersOf(port, Number.POSITIVE_INFINITY)) journal.closePromise(command);
}

export function isDelivered(delivery: Delivery): delivery is Extract<Delivery, DeliveredMessage> {
  return isDeliveredMessage(delivery.type);
}

/** open-promise.P1. These waits are over. */
export function closePromises(
  journal: JournalWriter,
  { promisePorts }: Execution,
  waits: readonly { readonly command: string }[],
): void {
  for (const { command } of waits) if (promisePorts.unlist(command)) journal.closePromise(command);
}

/** Whether the code waits for this reply. retry-record.V3: a child of an earlier epoch replies to the same command. */
export function isAwaitedReply(execution: Execution, command: string, data: string): boolean {
  if (!execution.isOpen(command)) return false;
  const wait = execution.waits.get(command);
  if (wait?.type !== "ChildWorkflow") return true;
  return decodeData("ChildWorkflowCompleted", data).childExecutionId === wait.name;
}

export function applySignal(journal: JournalWriter, execution: Execution, name: string, data: string): void {
  const decoded = decodeData("SignalReceived", data);
  const wait = execution.signals.announce(execution, name, decoded.value);
  journal.appendDelivery("SignalReceived", wait?.command ?? "", data, decoded);
  if (wait === undefined) return;
  execution.close(wait.command);
  if (wait.timed) journal.drop(wait.command);
}

/** Appends a repeated request only once: its sender may send it twice. */
export function applyUpdate(journal: JournalWriter, execution: Execution, id: string, data: string): void {
  const command = entryData.updateCommand(id);
  if (!execution.updates.announce(command)) return;
  journal.appendDelivery("UpdateRequested", command, data, decodeData("UpdateRequested", data));
}

/** The code continues as new: the updates it was handling get their answer now. */
export function abortUpdates(journal: JournalWriter, execution: Execution): void {
  execution.updates.abortRunning(execution);
  for (const request of execution.takeRequests())
    if (request.kind === "answer") journal.append(request.type, request.command, request.data);
}

/** Appends the terminal entry of a command. */
export function appendTerminal(
  journal: JournalWriter,
  execution: Execution,
  type: EntryType,
  command: string,
  text: string,
  data: object,
  ran?: EndedExecution,
): EpochMs {
  const at = journal.appendDelivery(type, command, text, data, ran);
  execution.close(command);
  if (type === "PromiseTimedOut") closePromises(journal, execution, [{ command }]);
  return at;
}

/** Returns the waits that it closes. Undefined: the run is canceled already, and a second request must not disturb its cleanup. */
export function announceCancel(
  journal: JournalWriter,
  execution: Execution,
  type: EntryType,
  data: string,
): readonly Wait[] | undefined {
  const { cancellation } = execution;
  if (cancellation.announced || cancellation.error !== undefined) return undefined;
  cancellation.announced = true;
  journal.appendDelivery(type, "", data, decodeData(type, data));
  const waits = execution.waits.cancellable();
  for (const { command } of waits) execution.close(command);
  for (const command of execution.commands.unrequestedPromises()) journal.closePromise(command);
  return waits;
}

/** Drops the items of these waits and cancels their children. */
export function dropWaits(journal: JournalWriter, execution: Execution, waits: readonly Wait[], cancel: string): void {
  closePromises(journal, execution, waits);
  for (const { command, type, timed, name } of waits)
    if (type === "ChildWorkflow") journal.send(name, { type: "CancelRequested", target: "", data: cancel });
    else if (type === "Task" || timed) journal.drop(command);
}
