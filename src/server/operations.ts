// Operations: every operation of the HTTP API with its code. A group is one line here.

import { accessOperations, approvalLinkOperations, eventOperations, type Operation } from "../contract/index.ts";
import type { HandlerOf, HandlersOf } from "./host.ts";
import { accessHandlers } from "./routes/access.ts";
import { approvalLinkHandlers } from "./routes/approval-links.ts";
import { eventHandlers } from "./routes/events.ts";

/** An operation and its code. */
export interface ImplementedOperation {
  /** Its key in its group: the `operationId` of the OpenAPI document. */
  readonly id: string;
  readonly operation: Operation;
  readonly handler: HandlerOf<Operation>;
}

function group<G extends Readonly<Record<string, Operation>>>(
  operations: G,
  handlers: HandlersOf<G>,
): readonly ImplementedOperation[] {
  return Object.entries(operations).map(([id, operation]) => ({
    id,
    operation,
    handler: handlers[id]! as unknown as HandlerOf<Operation>,
  }));
}

/** The table. */
export const OPERATIONS: readonly ImplementedOperation[] = [
  // One line per noun: ...group(runOperations, runHandlers),
  ...group(accessOperations, accessHandlers),
  ...group(approvalLinkOperations, approvalLinkHandlers),
  ...group(eventOperations, eventHandlers),
];

export { group };
