// Find call: the commands of a run by the name that its code gave them, such as the second call of `think`.

import {
  nodeItemOf,
  isOfType,
  promiseNameOf,
  stableCommandOf,
  type DecodedEntry,
  type Entry,
} from "../kernel/index.ts";
import { decodeEffectiveEntries } from "./recorded-journal.ts";

/** In the order in which the code requested them; an attempt of a node requests the commands of the attempt before again. */
export function commandsNamed(
  entries: readonly Entry[],
  name: string,
  what: "call" | "node" = "call",
): readonly string[] {
  const found = new Map<string, { readonly index: number; readonly place: number }>();
  let place = 0;
  for (const entry of decodeEffectiveEntries(entries)) {
    place += 1;
    const command = stableCommandOf(entry.command);
    const isNode = isOfType(entry, "NodeCompleted", "NodeFailed");
    if (nameIn(entry) !== name || found.has(command) || isNode !== (what === "node")) continue;
    found.set(command, { index: indexIn(entry), place });
  }
  const inNodes = [...found.keys()].some((command) => nodeItemOf(command) !== undefined);
  // The indexes of a workflow follow the order of its requests. A graph has them per node.
  return [...found]
    .toSorted(([, a], [, b]) => (inNodes ? a.place - b.place : a.index - b.index))
    .map(([command]) => command);
}

/** The name of a step, a task, a child's definition, a promise or a node. */
function nameIn(entry: DecodedEntry): string | undefined {
  if (isOfType(entry, "OperationCompleted", "OperationFailed", "OperationRetried", "NodeCompleted", "NodeFailed"))
    return entry.data.operationName;
  if (isOfType(entry, "TaskScheduled")) return entry.data.taskType;
  if (isOfType(entry, "ChildWorkflowInitiated")) return entry.data.childExecutionName;
  return isOfType(entry, "PromiseCreated") ? promiseNameOf(entry.data) : undefined;
}

function indexIn({ data }: DecodedEntry): number {
  return "index" in data && typeof data.index === "number" ? data.index : Number.MAX_SAFE_INTEGER;
}
