// Keys: the queue slots of nodes whose queue has limits per key.
//
// keys.K1. Only a worker runs a key function, and a commit follows only if it returned. The items of a spread get their keys in the
//   commit that spreads them. A node's input exists only once a worker has read what it needs: an action, a call, and an item of a
//   spread with `concurrency` wait outside of their queue first, and a worker then moves them into it.
// keys.K2. The entries of a spread hold the keys of its items, so that the store can queue them later without user code.

import { invariant, readableThrown, RepriseError } from "../base/index.ts";
import { isTask, parseNow, queueSlotOf, taskBody, type QueueSlot, type TaskBody } from "../kernel/index.ts";
import type { FlowBody } from "./definition.ts";
import type { FlowNode } from "./node.ts";

/** Whether the node, or each item of the spread, waits under a key. */
export function hasKey({ slotOptions }: FlowNode): boolean {
  return slotOptions?.key !== undefined;
}

/** Whether all items of the spread are queued, in portions, instead of a window of them. */
export function isPortioned(spread: FlowNode): boolean {
  return spread.work.kind === "spread" && spread.work.window === undefined && hasKey(spread);
}

/**
 * The slot of a node with a key, or of item `index` of a spread. `input`: the item, the input of the call, or the values that the
 * action needs.
 */
export function slotOf({ name }: FlowBody, node: FlowNode, input: unknown, index?: number): QueueSlot {
  const { slotOptions } = node;
  invariant(slotOptions?.key !== undefined, "The node has a key.");
  const what = `Flow ${name}: ${index === undefined ? `node ${node.name}` : `item ${index} of ${node.name}`}`;
  const task = taskOf(node);
  // The options of a spread may name another queue than its task.
  const isOfTask = task !== undefined && task.slotOptions === slotOptions;
  let parsed = input;
  if (isOfTask)
    try {
      parsed = parseNow(task.schema, input, what);
    } catch {
      // The attempt fails with this error, as it does without a key.
      return { queue: slotOptions.queue.name };
    }
  const key = (value: unknown): string => {
    try {
      return slotOptions.key!(value);
    } catch (error) {
      const cause = readableThrown(error);
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new RepriseError("BAD_FLOW", `${what}: its \`key\` function threw: ${message}`, { cause });
    }
  };
  return queueSlotOf({ ...slotOptions, key }, parsed, what)!;
}

function taskOf({ work }: FlowNode): TaskBody | undefined {
  const called = work.kind === "call" ? work.definition : work.kind === "spread" ? work.run : undefined;
  return isTask(called) ? taskBody(called) : undefined;
}
