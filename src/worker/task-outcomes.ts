// Task outcomes: what the worker writes when an attempt of a task has ended.

import type { EpochMs } from "../base/index.ts";
import type { ClaimedItem, RunNumber } from "../kernel/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { PersistentWrite } from "./released-claims.ts";
import type { TaskPoolHost } from "./task-pool.ts";

export interface TaskOutcomesHost {
  /** The item did not kill its worker. */
  clearSuspect(item: string): void;
  findRun(run: RunNumber): HotRun | undefined;
  /** The attempts of a task ran out. */
  onFailed(item: ClaimedItem): void;
  persist(write: PersistentWrite): void;
  dueAt(at: EpochMs): void;
  onQueueSlotFreed(): void;
}

export function taskOutcomes(
  host: TaskOutcomesHost,
): Pick<TaskPoolHost, "onEnded" | "onRetry" | "onWaiting" | "onGivenBack"> {
  return {
    onEnded(item, arrival, wasLocal) {
      const { run, token, slot } = item;
      if (arrival.type === "TaskFailed") host.onFailed(item);
      host.clearSuspect(`${run} ${item.item}`);
      const hot = host.findRun(run);
      if (hot?.acceptsResults === true) return hot.endTask(item, arrival, wasLocal);
      host.persist({ write: "end-item", run, item: item.item, token, ...(slot && { slot }), arrival });
    },
    onWaiting({ run, item }, wasLocal) {
      host.clearSuspect(`${run} ${item}`);
      if (wasLocal) host.findRun(run)?.onLocalTaskGone();
      host.onQueueSlotFreed();
    },
    onGivenBack({ run, item, token, attempt, execution, slot }, wasLocal) {
      if (wasLocal) host.findRun(run)?.onLocalTaskGone();
      const unused = { attempt, executions: execution - 1, ...(slot && { slot }) };
      host.persist({ write: "return-item", run, item, token, ...unused });
    },
    onRetry({ run, item, token, slot }, next, wasLocal) {
      host.clearSuspect(`${run} ${item}`);
      if (wasLocal) host.findRun(run)?.onLocalTaskGone();
      host.persist({ write: "return-item", run, item, token, ...(slot && { slot }), ...next });
      host.dueAt(next.availableAt);
    },
  };
}
