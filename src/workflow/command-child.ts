// ctx.child: starts another run. Its end settles the command.

import { digest, digestOf, encode, RepriseError } from "../base/index.ts";
import { checkDeadline, stepPath, type Definition } from "../kernel/index.ts";
import { compareInput } from "./command-matcher.ts";
import type { ChildOptions } from "./context.ts";
import { childInitiatedData, encodeInput } from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { never, rejected } from "./refusals.ts";
import { nodeOfCaller } from "./scope.ts";

export interface RequestedChild {
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
  const { identity, host, refusal } = execution;
  const sequence = execution.commands.peekNext("ChildWorkflow", nodeOfCaller());
  const epoch = execution.epochOf(execution.commands.issued);
  const path = epoch === 0 ? sequence : stepPath(String(sequence), epoch);
  const id = options.id ?? digestOf("reprise/child/v1", identity.id, identity.generation, path).slice(0, 32);
  const isDetached = options.detached === true;
  const child = (promise: Promise<unknown>, command?: string): RequestedChild => ({
    id,
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
  const fields = { childExecutionName: definition.name, childWorkflowKind: definition.kind };
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
      childExecutionId: id,
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
    } as const;
    execution.requests.push(request);
  }
  if (isDetached) return child(rejected(detachedError(id)), command.id);
  return child(execution.open("ChildWorkflow", command.id, id, false), command.id);
}

function detachedError(child: string): RepriseError {
  return new RepriseError(
    "USAGE",
    `Child ${child} is detached: this run cannot await it. Use \`engine.get(definition, "${child}").result()\` outside the workflow.`,
  );
}
