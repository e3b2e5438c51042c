// ctx.run: a call whose result the journal keeps. ctx.tx: the same for the user's SQL.

import { decode, encode } from "../base/index.ts";
import type { Database, Policy } from "../kernel/index.ts";
import type { OperationRequest } from "./command-request.ts";
import { compareInput, type IssuedCommand } from "./command-matcher.ts";
import type { InputOperationOptions } from "./context.ts";
import type { Execution } from "./execution.ts";
import { never, rejected } from "./refusals.ts";
import type { StepUndo } from "./undo.ts";

export function requestOperation(
  execution: Execution,
  name: string,
  input: { readonly value: unknown } | undefined,
  call: OperationRequest["call"],
  policy: Policy & Pick<InputOperationOptions, "cost" | "live" | "pure">,
  undo?: StepUndo,
  database?: Database<unknown>,
): Promise<unknown> {
  const { refusal } = execution;
  if (refusal !== undefined) return rejected(refusal);
  const text = input === undefined ? undefined : encode(input.value, execution.limits);
  const compare = compareInput("step", input?.value);
  const command = execution.issueCommand("Operation", "RecordOperation", { operationName: name }, compare);
  if (command === undefined) return never();
  if (!command.known) execution.requests.push(operationRequest(execution, command, name, text, call, policy, database));
  else {
    execution.host.onRecordedCall?.(command.id, name, database === undefined ? call : undefined, input?.value);
    const { pure } = policy;
    if (pure !== undefined)
      execution.host.onPureCall?.({ command: command.id, name, pure, call: (op) => call(op, text && decode(text)) });
  }
  return execution.open("Operation", command.id, name, false, undo);
}

function operationRequest(
  execution: Execution,
  { id, index, retried }: IssuedCommand,
  name: string,
  input: string | undefined,
  call: OperationRequest["call"],
  policy: Policy & Pick<InputOperationOptions, "cost" | "live" | "pure">,
  database: Database<unknown> | undefined,
): OperationRequest {
  return {
    kind: "operation",
    command: id,
    name,
    index,
    input,
    call,
    database,
    policy,
    pure: policy.pure,
    cost: policy.cost,
    ...(policy.live === true && { isLive: true }),
    epoch: execution.epochs.of(index),
    attempt: retried === undefined ? 0 : (retried.data.attempt ?? 0) + 1,
    dueAt: retried === undefined ? undefined : retried.at + retried.data.delay,
    lostTurns: execution.lostTurns.countNow(id, index),
  };
}
