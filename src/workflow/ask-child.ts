// ctx.child: another run, answered by its command.

import { digest, digestOf, encode, RepriseError } from "../base/index.ts";
import { checkDeadline, stepPath, type Definition } from "../kernel/index.ts";
import { compareInput } from "./commands.ts";
import type { ChildOptions } from "./context.ts";
import { childInitiatedData, encodeInput } from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { never, refused } from "./refusals.ts";
import { nodeOfCaller } from "./scope.ts";

export interface AskedChild {
  readonly id: string;
  readonly promise: Promise<unknown>;
  readonly definition: Definition;
  readonly isDetached: boolean;
  /** Undefined when it was not started. */
  readonly command: string | undefined;
  /** Messages so far. */
  sent: number;
}

export function askChild(
  execution: Execution,
  definition: Definition,
  input: unknown,
  options: ChildOptions,
): AskedChild {
  const { facts, host, refusal } = execution;
  const sequence = execution.commands.nextOf("ChildWorkflow", nodeOfCaller());
  const life = execution.lifeOf(execution.commands.issued);
  const which = life === 0 ? sequence : stepPath(String(sequence), life);
  const id = options.id ?? digestOf("reprise/child/v1", facts.id, facts.generation, which).slice(0, 32);
  const isDetached = options.detached === true;
  const child = (promise: Promise<unknown>, command?: string): AskedChild => ({
    id,
    promise,
    definition,
    isDetached,
    command,
    sent: 0,
  });
  if (refusal !== undefined) return child(refused(refusal));
  const accepted = host.acceptChild(definition, input);
  const text = encodeInput(accepted === undefined ? input : accepted.input, execution.limits);
  const given = accepted?.parsed === true ? digest(encode(input)) : undefined;
  const fields = { childExecutionName: definition.name, childWorkflowKind: definition.kind };
  const compare = compareInput("Child workflow", input);
  const command = execution.command("ChildWorkflow", "ScheduleChildWorkflow", fields, compare);
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
    const { line } = accepted;
    const deadlineMs = options.deadline === undefined ? undefined : checkDeadline(options.deadline, `Child ${id}`);
    const ask = {
      ask: "child",
      command: command.id,
      data,
      definition,
      childId: id,
      input: text,
      detached,
      line,
      deadlineMs,
    } as const;
    execution.asks.push(ask);
  }
  if (isDetached) return child(refused(doesNotAnswer(id)), command.id);
  return child(execution.open("ChildWorkflow", command.id, id, false), command.id);
}

function doesNotAnswer(child: string): RepriseError {
  return new RepriseError("USAGE", `Child ${child} is detached and does not answer; read it with engine.run.`);
}
