// ctx.child: starts another run. Its end settles the command.

import { digest, digestOf, encode, RepriseError } from "../base/index.ts";
import { checkChildBudget, checkDeadline, stepPath, type Definition } from "../kernel/index.ts";
import { compareInput } from "./command-matcher.ts";
import type { ChildOptions } from "./context.ts";
import { childInitiatedData, encodeInput } from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { never, rejected } from "./refusals.ts";
import { NO_MODELS } from "./run-models.ts";
import { nodeOfCaller } from "./scope.ts";

export interface RequestedChild {
  /** The recorded id, if the journal has the child: messages go to the run that was started. */
  readonly id: string;
  readonly promise: Promise<unknown>;
  readonly definition: Definition;
  readonly isDetached: boolean;
  /** Undefined: the child was not started. */
  readonly command: string | undefined;
  /** The number of messages sent to it. */
  sent: number;
}

export function requestChild(
  execution: Execution,
  definition: Definition,
  input: unknown,
  options: ChildOptions,
): RequestedChild {
  const { host, refusal } = execution;
  const id = childIdOf(execution, options.id);
  const isDetached = options.detached === true;
  const child = (promise: Promise<unknown>, command?: string, recordedId = id): RequestedChild => ({
    id: recordedId,
    promise,
    definition,
    isDetached,
    command,
    sent: 0,
  });
  if (refusal !== undefined) return child(rejected(refusal));
  const accepted = host.acceptChild(definition, input);
  const text = encodeInput(accepted === undefined ? input : accepted.input, execution.limits);
  const given = accepted?.parsed === true ? digest(encode(input)) : undefined;
  const fields = {
    childExecutionName: definition.name,
    childWorkflowKind: definition.kind,
    childExecutionId: id,
  };
  const compare = compareInput("child workflow", input);
  const command = execution.issueCommand("ChildWorkflow", "ScheduleChildWorkflow", fields, compare);
  if (command === undefined) return child(never());
  if (!command.known) {
    if (accepted === undefined) {
      const stop = unregistered("UNKNOWN_DEFINITION", execution.body, definition.name, command.id);
      return child(execution.halt(stop));
    }
    const data = childInitiatedData({
      index: command.index,
      ...fields,
      input: text,
      given,
      shielded: execution.isShielded,
    });
    const detached = isDetached;
    const deadlineMs = options.deadline === undefined ? undefined : checkDeadline(options.deadline, `Child ${id}`);
    const request = {
      kind: "child",
      command: command.id,
      data,
      definition,
      childId: id,
      input: text,
      detached,
      slot: accepted.slot,
      deadlineMs,
      ...(execution.draws.models !== NO_MODELS && { models: execution.draws.models }),
      budget: options.budget === undefined ? undefined : checkChildBudget(options.budget, `Child ${id}`),
    } as const;
    execution.requests.push(request);
  }
  // Another id only in a lenient replay, which notes the difference.
  const recordedId = (command.known ? execution.commands.findRecordedChild(command.id) : undefined) ?? id;
  if (isDetached) return child(rejected(detachedError(recordedId)), command.id, recordedId);
  return child(execution.open("ChildWorkflow", command.id, recordedId, false), command.id, recordedId);
}

/**
 * fork.F5. The children that a fork shares keep their ids. Those it starts have ids of their own, also where the code names
 * them: the origin may have started a run with that name.
 */
function childIdOf(execution: Execution, named: string | undefined): string {
  const { commands, identity } = execution;
  const sequence = commands.peekNext("ChildWorkflow", nodeOfCaller());
  if (!commands.isFork) return named ?? defaultChildId(execution, sequence);
  const shared = commands.findSharedChild(`ChildWorkflow(${sequence})`);
  if (shared !== undefined) return shared;
  if (named === undefined) return defaultChildId(execution, sequence);
  return `${named}~${digestOf("reprise/fork-child/v1", identity.id).slice(0, 8)}`;
}

/** The id of a child that has none of its own: derived from the run and the command. */
function defaultChildId(execution: Execution, sequence: number | string): string {
  const { commands, identity } = execution;
  const idIn = (epoch: number): string => {
    const path = epoch === 0 ? sequence : stepPath(String(sequence), epoch);
    return digestOf("reprise/child/v1", identity.id, identity.generation, path).slice(0, 32);
  };
  const recorded = commands.findRecordedChild(typeof sequence === "string" ? sequence : `ChildWorkflow(${sequence})`);
  // Per type, code may request its commands in another order. In a retried run this command then has an index of another
  // epoch (retry-record.V3), but it is the same child.
  if (recorded !== undefined)
    for (let epoch = 0; epoch <= execution.epochs.last; epoch += 1) if (idIn(epoch) === recorded) return recorded;
  return idIn(execution.epochs.of(commands.issued));
}

function detachedError(child: string): RepriseError {
  return new RepriseError(
    "USAGE",
    `Child ${child} is detached: this run cannot await it. Use \`engine.get(definition, "${child}").result()\` outside the workflow.`,
  );
}
