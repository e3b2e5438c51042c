// Open commands: reads a journal in order and keeps the entries that opened commands which have no answer yet.

import { isCancel, isOfType, isTerminal, type DecodedEntry } from "../kernel/index.ts";

/** The entry of a command that is recorded when it is requested, and answered later. */
export type OpeningEntry = DecodedEntry<
  "TaskScheduled" | "ChildWorkflowInitiated" | "TimerStarted" | "PromiseCreated" | "SettleRequested"
>;

export class OpenCommands {
  readonly #open = new Map<string, OpeningEntry>();
  readonly #settledPorts = new Set<string>();

  note(entry: DecodedEntry): void {
    if (
      isOfType(entry, "TaskScheduled", "ChildWorkflowInitiated", "TimerStarted", "PromiseCreated", "SettleRequested")
    ) {
      if (entry.type !== "PromiseCreated" || !this.#settledPorts.has(entry.data.promiseId))
        this.#open.set(entry.command, entry);
    } else if (isCancel(entry.type)) {
      for (const [command, { data }] of this.#open) if (data.shielded !== true) this.#open.delete(command);
    } else if (entry.type === "PromiseResolved" || entry.type === "PromiseRejected") {
      const { promiseId } = entry.data;
      this.#settledPorts.add(promiseId);
      for (const [command, { type, data }] of this.#open)
        if (type === "PromiseCreated" && data.promiseId === promiseId) this.#open.delete(command);
    } else if (isTerminal(entry.type)) this.#open.delete(entry.command);
  }

  has(command: string): boolean {
    return this.#open.has(command);
  }

  all(): readonly OpeningEntry[] {
    return [...this.#open.values()];
  }

  /** fork.F5. Returns them, and starts again: a fork requests them as its own. */
  take(): readonly OpeningEntry[] {
    const open = this.all();
    this.#open.clear();
    return open;
  }
}
