// Messages get their place in the journal, and the waits they will settle are told so.

import { decode } from "../base/index.ts";
import { entryData, type Execution } from "../workflow/index.ts";
import type { Draft } from "./draft.ts";

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
