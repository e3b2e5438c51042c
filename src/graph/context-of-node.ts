// The context a node's function is given: the run's durable context, with what belongs to this attempt.

import { checkName } from "../base/index.ts";
import type { Logger } from "../kernel/index.ts";
import type { DurableContext, OperationContext } from "../workflow/index.ts";
import type { NodeContext } from "./context.ts";

/** What a node's code may ask of the run; it needs no `this`, so code may take its context apart. */
const SHARED = ["task", "run", "tx", "child", "promise", "now", "random", "send", "uuid"] as const;
type Shared = Pick<DurableContext, (typeof SHARED)[number]>;

const sharedBy = new WeakMap<DurableContext, Shared>();

/** Taken out once per run. */
function sharedOf(durable: DurableContext): Shared {
  const known = sharedBy.get(durable);
  if (known !== undefined) return known;
  const shared = Object.fromEntries(SHARED.map((name) => [name, durable[name]])) as unknown as Shared;
  sharedBy.set(durable, shared);
  return shared;
}

/** `keyOfItem`: where the node makes its own. `labelled` is told what the code calls the checkpoint of its step. */
export function contextOfNode(
  durable: DurableContext,
  op: OperationContext,
  step: number,
  keyOfItem: (() => string) | undefined,
  labelled: (label: string) => void,
): NodeContext {
  return {
    ...sharedOf(durable),
    runId: durable.runId,
    step,
    attempt: op.attempt,
    get idempotencyKey(): string {
      return keyOfItem === undefined ? op.idempotencyKey : keyOfItem();
    },
    get abortSignal(): AbortSignal {
      return op.abortSignal;
    },
    get log(): Logger {
      return op.log;
    },
    emit: (name, chunk) => op.emit(name as never, chunk as never),
    // Nothing comes back: a node may `return ctx.label(…)`.
    label: (name) => {
      labelled(checkName(name, "checkpoint label"));
    },
  };
}
