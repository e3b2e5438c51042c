// Earlier executions: how often operations and nodes were executed before the last retry of their run (attempts.X1).

import { lastExecutions, type Entry, type RetryRecord } from "../kernel/index.ts";

const CALL_ENDS: ReadonlySet<string> = new Set([
  "OperationCompleted",
  "OperationFailed",
  "NodeCompleted",
  "NodeFailed",
]);

export class EarlierExecutions {
  /** The `RunRetried` entry of the last retry. */
  readonly retriedAt: number;
  readonly #last: ReadonlyMap<string, number>;
  /** Per retry of a workflow: how many commands the code had requested, and which calls had ended since the retry before. */
  readonly #epochs: readonly { readonly commands: number; readonly ended: ReadonlySet<string> }[];

  constructor(entries: readonly Entry[], retries: readonly RetryRecord[]) {
    this.retriedAt = retries.at(-1)?.seq ?? 0;
    this.#last = lastExecutions(entries.filter(({ seq }) => seq < this.retriedAt));
    this.#epochs = retries.map(({ seq, commands }, index) => {
      const since = retries[index - 1]?.seq ?? 0;
      const ended = entries.filter((entry) => entry.seq > since && entry.seq < seq && CALL_ENDS.has(entry.type));
      return { commands, ended: new Set(ended.map(({ command }) => command)) };
    });
  }

  /** A call that was requested and has no end may have been running when the run failed. */
  count(command: string, index: number): number {
    const running = this.#epochs.filter(({ commands, ended }) => index < commands && !ended.has(command));
    return (this.#last.get(command) ?? 0) + running.length;
  }
}
