// Create node context: the run's durable context, combined with the members that belong to one attempt.

import { checkName } from "../base/index.ts";
import type { Logger } from "../kernel/index.ts";
import type { DurableContext, OperationContext } from "../workflow/index.ts";
import type { NodeContext } from "./node-context.ts";

const DURABLE = Symbol("durable");

/** What a node has from the context of its run, which makes a method when it is first read: most nodes read few of them. */
const FROM_RUN = [
  "models",
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
] as const satisfies readonly (keyof NodeContext & keyof DurableContext)[];

/**
 * Every node allocates one. A class, because an object literal with accessors becomes a dictionary (1.1 against 0.1 µs). Methods
 * do not use `this`, so code can destructure its context.
 */
class AttemptContext implements NodeContext {
  readonly runId: string;
  readonly step: number;
  readonly attempt: number;
  readonly emit: NodeContext["emit"];
  readonly label: NodeContext["label"];
  declare readonly models: NodeContext["models"];
  declare readonly task: NodeContext["task"];
  declare readonly run: NodeContext["run"];
  declare readonly tx: NodeContext["tx"];
  declare readonly child: NodeContext["child"];
  declare readonly promise: NodeContext["promise"];
  declare readonly resolve: NodeContext["resolve"];
  declare readonly reject: NodeContext["reject"];
  declare readonly now: NodeContext["now"];
  declare readonly random: NodeContext["random"];
  declare readonly send: NodeContext["send"];
  declare readonly uuid: NodeContext["uuid"];
  declare readonly deterministic: NodeContext["deterministic"];
  readonly [DURABLE]: DurableContext;
  readonly #op: OperationContext;
  readonly #nodeKey: (() => string) | undefined;

  constructor(
    durable: DurableContext,
    op: OperationContext,
    step: number,
    nodeKey: (() => string) | undefined,
    onLabel: (label: string) => void,
  ) {
    this.runId = durable.runId;
    this.step = step;
    this.attempt = op.attempt;
    this.emit = (name, chunk) => op.emit(name as never, chunk as never);
    // Returns nothing, because a node may `return ctx.label(…)`.
    this.label = (name) => {
      onLabel(checkName(name, "checkpoint label"));
    };
    this[DURABLE] = durable;
    this.#op = op;
    this.#nodeKey = nodeKey;
  }

  get idempotencyKey(): string {
    return this.#nodeKey === undefined ? this.#op.idempotencyKey : this.#nodeKey();
  }
  get abortSignal(): AbortSignal {
    return this.#op.abortSignal;
  }
  get log(): Required<Logger> {
    return this.#op.log;
  }
}

for (const name of FROM_RUN)
  Object.defineProperty(AttemptContext.prototype, name, {
    enumerable: true,
    get(this: AttemptContext): unknown {
      return this[DURABLE][name];
    },
    // Code may wrap a method.
    set(this: AttemptContext, value: unknown) {
      Object.defineProperty(this, name, { value, enumerable: true, configurable: true, writable: true });
    },
  });

/** `nodeKey`: set if the node's options make its key. `onLabel` receives the name for the checkpoint of the step. */
export function createNodeContext(
  durable: DurableContext,
  op: OperationContext,
  step: number,
  nodeKey: (() => string) | undefined,
  onLabel: (label: string) => void,
): NodeContext {
  return new AttemptContext(durable, op, step, nodeKey, onLabel);
}
