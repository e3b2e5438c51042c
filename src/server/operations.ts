// Operations: every operation of the HTTP API with its code. A group is one line here.

import {
  accessOperations,
  approvalLinkOperations,
  controlOperations,
  definitionOperations,
  evalOperations,
  eventOperations,
  exactOperations,
  hookOperations,
  mcpOperations,
  messageOperations,
  monitorOperations,
  promiseOperations,
  queueOperations,
  runOperations,
  runReadOperations,
  scheduleOperations,
  siteOperations,
  streamOperations,
  type Operation,
} from "../contract/index.ts";
import type { HandlerOf, HandlersOf } from "./host.ts";
import { accessHandlers } from "./routes/access.ts";
import { approvalLinkHandlers } from "./routes/approval-links.ts";
import { controlHandlers } from "./routes/control.ts";
import { definitionHandlers } from "./routes/definitions.ts";
import { evalHandlers } from "./routes/evals.ts";
import { eventHandlers } from "./routes/events.ts";
import { exactHandlers } from "./routes/exact.ts";
import { hookHandlers } from "./routes/hooks.ts";
import { mcpHandlers } from "./routes/mcp.ts";
import { messageHandlers } from "./routes/messages.ts";
import { monitorHandlers } from "./routes/monitor.ts";
import { promiseHandlers } from "./routes/promises.ts";
import { queueHandlers } from "./routes/queues.ts";
import { runHandlers } from "./routes/runs.ts";
import { runReadHandlers } from "./routes/run-reads.ts";
import { scheduleHandlers } from "./routes/schedules.ts";
import { siteHandlers } from "./routes/site.ts";
import { streamHandlers } from "./routes/streams.ts";

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
  ...group(accessOperations, accessHandlers),
  ...group(approvalLinkOperations, approvalLinkHandlers),
  ...group(eventOperations, eventHandlers),
  ...group(monitorOperations, monitorHandlers),
  ...group(exactOperations, exactHandlers),
  ...group(siteOperations, siteHandlers),
  ...group(runOperations, runHandlers),
  ...group(runReadOperations, runReadHandlers),
  ...group(streamOperations, streamHandlers),
  ...group(definitionOperations, definitionHandlers),
  ...group(messageOperations, messageHandlers),
  ...group(controlOperations, controlHandlers),
  ...group(promiseOperations, promiseHandlers),
  ...group(queueOperations, queueHandlers),
  ...group(scheduleOperations, scheduleHandlers),
  ...group(evalOperations, evalHandlers),
  ...group(hookOperations, hookHandlers),
  ...group(mcpOperations, mcpHandlers),
];

export { group };
