// ctx.run: a call to the outside whose answer the journal keeps. ctx.tx: the same for the user's own SQL.

import { encode } from "../base/index.ts";
import type { Database, Policy } from "../kernel/index.ts";
import type { OperationAsk } from "./ask.ts";
import { compareInput, type Command } from "./commands.ts";
import type { Execution } from "./execution.ts";
import { never, refused } from "./refusals.ts";
import type { StepUndo } from "./undo.ts";

export function askOperation(
  execution: Execution,
  name: string,
  input: { readonly value: unknown } | undefined,
  call: OperationAsk["call"],
  policy: Policy,
  undo?: StepUndo,
  database?: Database<unknown>,
): Promise<unknown> {
  const { refusal } = execution;
  if (refusal !== undefined) return refused(refusal);
  const text = input === undefined ? undefined : encode(input.value, execution.limits);
  const compare = compareInput("Operation", input?.value);
  const command = execution.command("Operation", "RecordOperation", { operationName: name }, compare);
  if (command === undefined) return never();
  if (!command.known) execution.asks.push(operationAsk(execution, command, name, text, call, policy, database));
  else execution.host.served?.(command.id, name, database === undefined ? call : undefined, input?.value);
  return execution.open("Operation", command.id, name, false, undo);
}

function operationAsk(
  execution: Execution,
  { id, index, retried }: Command,
  name: string,
  input: string | undefined,
  call: OperationAsk["call"],
  policy: Policy,
  database: Database<unknown> | undefined,
): OperationAsk {
  return {
    ask: "operation",
    command: id,
    name,
    index,
    input,
    call,
    database,
    policy,
    life: execution.lifeOf(index),
    attempt: retried === undefined ? 0 : Number(retried.data["attempt"] ?? 0) + 1,
    dueAt: retried === undefined ? undefined : retried.at + Number(retried.data["delay"]),
  };
}
