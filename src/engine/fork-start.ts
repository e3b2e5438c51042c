// Fork start: how a fork at a command or a node begins, of what the caller gave and what its origin had.

import { checkRunId, RepriseError } from "../base/index.ts";
import {
  checkBudget,
  checkDeadline,
  commandForkText,
  type BudgetCap,
  type BudgetOptions,
  type ChildBudget,
  type CommandForkOrigin,
  type RunRecord,
  type RunStartedData,
} from "../kernel/index.ts";
import { startSpan, type NewRunOptions } from "../process/index.ts";
import { entryData } from "../workflow/index.ts";
import type { ForkAtOptions } from "./fork-at.ts";
import type { RunHandleHost } from "./run-handle.ts";
import { checkStart } from "./start-options.ts";

export interface ForkStart extends ReturnType<typeof checkStart> {
  readonly id: string;
  /** Undefined: that of the origin. */
  readonly deadlineMs: number | undefined;
  readonly budget: BudgetCap | undefined;
}

export function checkForkStart(host: RunHandleHost, record: RunRecord, options: ForkAtOptions): ForkStart {
  const { tags, priority } = checkStart(options);
  const id = options.id === undefined ? host.newId() : checkRunId(options.id);
  const deadlineMs = options.deadline === undefined ? undefined : checkDeadline(options.deadline, "fork");
  if (record.head === 0)
    throw new RepriseError(
      "USAGE",
      `Run ${record.id} has not been started yet, so there is nothing to fork. Start it first: engine.start.`,
    );
  const budget = options.budget === undefined ? undefined : checkBudget(options.budget, "fork");
  return { id, tags, priority, deadlineMs, budget };
}

/** A fork has a budget of its own, and spends nothing of its origin's. */
export function forkBudget(options: { readonly budget?: BudgetOptions }, started: RunStartedData): ChildBudget {
  const budget = options.budget ?? started.budget;
  return budget === undefined ? "none" : checkBudget(budget, "fork");
}

/** The fork waits in the queue of its origin, under the same key. */
export function forkParts(
  host: RunHandleHost,
  { id, tags, priority, deadlineMs, budget }: ForkStart,
  body: { readonly name: string; readonly version: number },
  started: RunStartedData,
  forked: CommandForkOrigin,
): NewRunOptions {
  return {
    id,
    input: entryData.encodeInput(started.input),
    tags,
    priority,
    slot: started.line,
    runtime: host.runtime,
    flags: started.flags,
    payloadLimit: started.payloadLimit,
    salt: host.newSalt?.(),
    deadlineMs: deadlineMs ?? started.deadline,
    budget: budget ?? forkBudget({}, started),
    forked: commandForkText(forked),
    span: startSpan(host, body, id, { isRoot: true, link: started.trace }),
  };
}
