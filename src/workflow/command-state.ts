// ctx.state: named values that the journal keeps.

import { encode } from "../base/index.ts";
import { stateClearedData, stateSetData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";

export function setState(execution: Execution, key: string, value: unknown): void {
  const text = encode(value, execution.limits);
  if (execution.refusal !== undefined) throw execution.refusal;
  const command = execution.issueCommand("State", "SetState", { key }, (recorded) => {
    if (recorded.type !== "StateSet") return undefined;
    const actual = encode(recorded.data.value);
    return text === actual ? undefined : { what: "state value", expected: text, actual, differs: "value" };
  });
  if (command === undefined) return;
  execution.state.set(key, text);
  const { id, index } = command;
  if (!command.known)
    execution.requests.push({ kind: "state", type: "StateSet", command: id, data: stateSetData(index, key, text) });
}

export function clearState(execution: Execution, key: string | undefined): void {
  if (execution.refusal !== undefined) throw execution.refusal;
  const command = execution.issueCommand("State", "ClearState", { key });
  if (command === undefined) return;
  execution.state.clear(key);
  const { id, index } = command;
  if (!command.known)
    execution.requests.push({ kind: "state", type: "StateCleared", command: id, data: stateClearedData(index, key) });
}
