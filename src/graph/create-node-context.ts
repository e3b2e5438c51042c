// Create node context: the run's durable context, combined with the members that belong to one attempt.

import { checkName } from "../base/index.ts";
import type { Logger } from "../kernel/index.ts";
import type { DurableContext, OperationContext } from "../workflow/index.ts";
import type { NodeContext } from "./node-context.ts";

/** The methods that a node shares with its run. They do not use `this`, so code can destructure its context. */
const SHARED = [
  "task",
  "run",
  "tx",
  "child",
  "promise",
  "resolve",
  "reject",
  "now",
  "random",
  "send",
  "uuid",
  "deterministic",
] as const;
type Shared = Pick<DurableContext, (typeof SHARED)[number]>;

const sharedBy = new WeakMap<DurableContext, Shared>();

/** Built once per run. */
function sharedOf(durable: DurableContext): Shared {
  const known = sharedBy.get(durable);
  if (known !== undefined) return known;
  const shared = Object.fromEntries(SHARED.map((name) => [name, durable[name]])) as unknown as Shared;
  sharedBy.set(durable, shared);
  return shared;
}

/** `nodeKey`: set if the node's options make its key. `onLabel` receives the name for the checkpoint of the step. */
export function createNodeContext(
  durable: DurableContext,
  op: OperationContext,
  step: number,
  nodeKey: (() => string) | undefined,
  onLabel: (label: string) => void,
): NodeContext {
  return {
    ...sharedOf(durable),
    runId: durable.runId,
    models: durable.models,
    step,
    attempt: op.attempt,
    get idempotencyKey(): string {
      return nodeKey === undefined ? op.idempotencyKey : nodeKey();
    },
    get abortSignal(): AbortSignal {
      return op.abortSignal;
    },
    get log(): Required<Logger> {
      return op.log;
    },
    emit: (name, chunk) => op.emit(name as never, chunk as never),
    // Returns nothing, because a node may `return ctx.label(…)`.
    label: (name) => {
      onLabel(checkName(name, "checkpoint label"));
    },
  };
}
