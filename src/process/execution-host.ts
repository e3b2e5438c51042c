// ExecutionHost: what the code of all runs needs from their process, built from the registry. The worker executes with it; a
// client replays with it.

import type { ExecutionHost, Guard } from "../workflow/index.ts";
import { lineData, type LogLine } from "./process-log.ts";
import type { Registry } from "./registry.ts";

export interface ExecutionHostParts {
  /** Absent for a journal without a store. */
  readonly storeKind?: string;
  readonly registry: Registry;
  readonly guard: Guard;
  readonly log: LogLine;
}

export function executionHostOf({ storeKind, registry, guard, log }: ExecutionHostParts): ExecutionHost {
  return {
    ...(storeKind !== undefined && { storeKind }),
    log: (run, level, message, data) => log(level, message, lineData({ run }, data)),
    guard,
    library: guard,
    acceptTask: (task, input) => registry.acceptTask(task, input),
    hasTask: (task) => registry.findTask(task.name) !== undefined,
    acceptChild: (definition, input) => registry.acceptChild(definition, input),
    portsOf: (definition) => registry.portsOf(definition),
    acceptNext: (name, version, input) => registry.acceptNext(name, version, input),
  };
}
