// ChangeEvent: one change of a store as the feed carries it, and who may see it.

import type { ChangeReset, PromiseChange, QueueChange, RunChange, WorkerChange } from "../../contract/index.ts";
import type { RunStatus } from "../../kernel/index.ts";
import { isScoped, maySeeQueue, maySeeRun } from "../auth/scope.ts";
import type { Caller } from "../host.ts";

/** The run that an event is about. */
export interface ChangedRun {
  readonly id: string;
  readonly definition: string;
  readonly tags: readonly string[];
  /** The statuses before and after the change. */
  readonly statuses: readonly RunStatus[];
}

export type ChangeEvent =
  | { readonly event: "run"; readonly data: RunChange; readonly run: ChangedRun }
  | { readonly event: "promise"; readonly data: PromiseChange; readonly run: ChangedRun }
  | { readonly event: "queue"; readonly data: QueueChange }
  | { readonly event: "worker"; readonly data: WorkerChange }
  | { readonly event: "reset"; readonly data: ChangeReset };

/** What a reader of the feed asks for; absent: everything. */
export interface ChangeFilter {
  readonly run?: readonly string[];
  readonly definition?: readonly string[];
  readonly status?: readonly RunStatus[];
}

/** A run that leaves the status of the filter is reported as well, so that a list can drop it. */
export function isWanted(change: ChangeEvent, { run, definition, status }: ChangeFilter): boolean {
  if (change.event === "reset") return true;
  const isOfRuns = run !== undefined || definition !== undefined || status !== undefined;
  if (!("run" in change)) return !isOfRuns;
  if (run !== undefined && !run.includes(change.run.id)) return false;
  if (definition !== undefined && !definition.includes(change.run.definition)) return false;
  return status === undefined || change.event === "promise" || change.run.statuses.some((one) => status.includes(one));
}

/** Whether the scopes of a caller let it see the change. */
export function isVisible(change: ChangeEvent, caller: Caller | undefined): boolean {
  switch (change.event) {
    case "run":
    case "promise":
      return maySeeRun(caller, change.run);
    case "queue":
      return maySeeQueue(caller, change.data.name);
    case "worker":
      // Workers belong to no definition: a caller with a scope does not see them.
      return !isScoped(caller);
    case "reset":
      return true;
  }
}
