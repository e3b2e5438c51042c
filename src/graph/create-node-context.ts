// Create node context: the run's durable context, combined with the members that belong to one attempt.

import { checkName } from "../base/index.ts";
import type { Logger } from "../kernel/index.ts";
import type { DurableContext, OperationContext } from "../workflow/index.ts";
import type { NodeContext } from "./node-context.ts";

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
  readonly #durable: DurableContext;
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
    this.#durable = durable;
    this.#op = op;
    this.#nodeKey = nodeKey;
  }

  // The run's context makes a method when it is first read: most nodes read few of them.
  /* oxlint-disable typescript/unbound-method -- they do not use `this` */
  get models(): NodeContext["models"] {
    return this.#durable.models;
  }
  get task(): NodeContext["task"] {
    return this.#durable.task;
  }
  get run(): NodeContext["run"] {
    return this.#durable.run;
  }
  get tx(): NodeContext["tx"] {
    return this.#durable.tx;
  }
  get child(): NodeContext["child"] {
    return this.#durable.child;
  }
  get promise(): NodeContext["promise"] {
    return this.#durable.promise;
  }
  get resolve(): NodeContext["resolve"] {
    return this.#durable.resolve;
  }
  get reject(): NodeContext["reject"] {
    return this.#durable.reject;
  }
  get now(): NodeContext["now"] {
    return this.#durable.now;
  }
  get random(): NodeContext["random"] {
    return this.#durable.random;
  }
  get send(): NodeContext["send"] {
    return this.#durable.send;
  }
  get uuid(): NodeContext["uuid"] {
    return this.#durable.uuid;
  }
  get deterministic(): NodeContext["deterministic"] {
    return this.#durable.deterministic;
  }
  /* oxlint-enable typescript/unbound-method */

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
