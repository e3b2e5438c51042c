// Applies inbox messages: appends each to the journal, and closes the waits that it settles.

import { decodeData, type EntryType } from "../kernel/index.ts";
import { entryData, type Execution } from "../workflow/index.ts";
import type { JournalWriter } from "./journal-writer.ts";

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
  for (const request of execution.requests.splice(0))
    if (request.kind === "answer") journal.append(request.type, request.command, request.data);
}
