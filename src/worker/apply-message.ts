// Messages get their place in the journal, and the waits they will settle are told so.

import { decode } from "../base/index.ts";
import type { EntryType } from "../kernel/index.ts";
import { entryData, type Execution } from "../workflow/index.ts";
import type { Draft } from "./draft.ts";

export function applyPort(draft: Draft, execution: Execution, type: EntryType, port: string, data: string): void {
  const waits = execution.waitsOn(port);
  draft.appendDelivery(type, waits[0]?.command ?? "", data, decode(data) as Readonly<Record<string, unknown>>);
  for (const { command, timed } of waits) {
    execution.close(command);
    if (timed) draft.drop(command);
  }
}

/** Whether somebody waits for this answer. V3: a child of a life that was given up answers by the same name. */
export function answers(execution: Execution, command: string, data: string): boolean {
  if (!execution.isOpen(command)) return false;
  const wait = execution.waits.get(command);
  if (wait?.type !== "ChildWorkflow") return true;
  return (decode(data) as { childExecutionId?: unknown }).childExecutionId === wait.name;
}

export function applySignal(draft: Draft, execution: Execution, name: string, data: string): void {
  const decoded = decode(data) as Readonly<Record<string, unknown>>;
  const wait = execution.signals.announce(execution, name, decoded["value"]);
  draft.appendDelivery("SignalReceived", wait?.command ?? "", data, decoded);
  if (wait === undefined) return;
  execution.close(wait.command);
  if (wait.timed) draft.drop(wait.command);
}

/** A request that is in the journal already is not written again: its sender asks a second time. */
export function applyUpdate(draft: Draft, execution: Execution, id: string, data: string): void {
  const command = entryData.updateCommand(id);
  if (!execution.updates.announce(command)) return;
  draft.appendDelivery("UpdateRequested", command, data, decode(data) as Readonly<Record<string, unknown>>);
}

/** The code continues as new: what it was about to answer gets its answer now. */
export function breakOffUpdates(draft: Draft, execution: Execution): void {
  execution.updates.breakOff(execution);
  for (const ask of execution.asks.splice(0)) if (ask.ask === "answer") draft.append(ask.type, ask.command, ask.data);
}
