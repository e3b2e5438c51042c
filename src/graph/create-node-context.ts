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
  readonly models: NodeContext["models"];
  readonly task: NodeContext["task"];
  readonly run: NodeContext["run"];
  readonly tx: NodeContext["tx"];
  readonly child: NodeContext["child"];
  readonly promise: NodeContext["promise"];
  readonly resolve: NodeContext["resolve"];
  readonly reject: NodeContext["reject"];
  readonly now: NodeContext["now"];
  readonly random: NodeContext["random"];
  readonly send: NodeContext["send"];
  readonly uuid: NodeContext["uuid"];
  readonly deterministic: NodeContext["deterministic"];
  readonly step: number;
  readonly attempt: number;
  readonly emit: NodeContext["emit"];
  readonly label: NodeContext["label"];
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
    this.models = durable.models;
    /* oxlint-disable typescript/unbound-method -- they do not use `this` */
    this.task = durable.task;
    this.run = durable.run;
    this.tx = durable.tx;
    this.child = durable.child;
    this.promise = durable.promise;
    this.resolve = durable.resolve;
    this.reject = durable.reject;
    this.now = durable.now;
    this.random = durable.random;
    this.send = durable.send;
    this.uuid = durable.uuid;
    this.deterministic = durable.deterministic;
    /* oxlint-enable typescript/unbound-method */
    this.step = step;
    this.attempt = op.attempt;
    this.emit = (name, chunk) => op.emit(name as never, chunk as never);
    // Returns nothing, because a node may `return ctx.label(…)`.
    this.label = (name) => {
      onLabel(checkName(name, "checkpoint label"));
    };
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
