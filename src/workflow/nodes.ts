// Nodes: the attempts of a graph's nodes whose code is at work in an execution.
//
// N1. A node waits while its code waits for something that may come when nobody holds the run: a task, a child, a promise.
//     Its own calls (`ctx.run`, `ctx.tx`) are no such thing: they are at work here. Neither is what was kept for it.
// N2. When an attempt is over nothing it asked for is kept, and nothing it asks for any more is heard.

import type { EpochMs, RepriseError } from "../base/index.ts";
import type { StoppedNode } from "./ask.ts";
import type { Execution } from "./execution.ts";
import { callInNode, type NodeMessage, type NodeScope } from "./scope.ts";
import type { Wait } from "./waits.ts";

/** A message of a node that has a result. */
export interface SentByNode extends NodeMessage {
  /** `Node(3.0)#0/Message(0)` */
  readonly command: string;
}

const NOTHING: readonly never[] = [];

export class Nodes {
  readonly #execution: Execution;
  readonly #atWork = new Map<string, NodeScope>();
  /** Between two attempts: which comes next. */
  readonly #next = new Map<string, number>();
  /** When those begin that are repeated. */
  readonly #due = new Map<string, EpochMs>();
  /** Told of every attempt that will be repeated. */
  onRetried: (() => void) | undefined;
  /** Told of every node whose function has ended for good; its result is in the journal, not yet durable. */
  onCompleted: ((command: string, at: EpochMs) => void) | undefined;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  /** How many are at work. */
  get count(): number {
    return this.#atWork.size;
  }

  /** Code of one is at work that waits for nothing of `ctx`. */
  get isBusy(): boolean {
    for (const { open } of this.#atWork.values()) if (open === 0) return true;
    return false;
  }

  isAtWork(command: string): boolean {
    return this.#atWork.has(command);
  }

  /** The attempt at work, or the one that comes next; undefined of a node that has not been tried here. */
  attemptOf(command: string): number | undefined {
    return this.#atWork.get(command)?.attempt ?? this.#next.get(command);
  }

  /** Calls the code of an attempt. */
  call<T>(scope: NodeScope, code: () => T): T {
    this.#atWork.set(scope.command, scope);
    if (scope.attempt > 0) this.#next.delete(scope.command);
    this.#due.delete(scope.command);
    return callInNode(scope, this.#execution.host.nodeGuard, code);
  }

  /** The attempt whose code is at work for a node. */
  scopeOf(command: string): NodeScope | undefined {
    return this.#atWork.get(command);
  }

  /** N1 */
  opened(node: NodeScope, { type, kept }: Wait): void {
    node.open += 1;
    if (type === "Operation" || kept === true) return;
    node.waiting += 1;
    if (node.waiting === 1) this.#execution.host.nodeWaits?.(node.command, true);
  }

  closed(node: NodeScope, { type, kept }: Wait): void {
    node.open -= 1;
    // What was kept says itself when it came.
    if (kept === true) return;
    node.time = Math.max(node.time, this.#execution.time);
    if (type === "Operation") return;
    node.waiting -= 1;
    if (node.waiting === 0) this.#execution.host.nodeWaits?.(node.command, false);
  }

  /** N2. An attempt is over; answers what its code has sent. */
  end(command: string): readonly SentByNode[] {
    const scope = this.#atWork.get(command);
    if (scope === undefined) return NOTHING;
    scope.over = true;
    this.#execution.waits.forgetNext(scope.prefix);
    this.#atWork.delete(command);
    // Most nodes have got all they waited for.
    if (scope.open > 0) this.#execution.abandon(this.#execution.waits.dropUnless(({ node }) => node !== scope));
    const { messages = NOTHING, prefix } = scope;
    return messages.map((message, index) => ({ ...message, command: `${prefix}Message(${index})` }));
  }

  /** N2. An attempt is over and will be repeated. */
  retried(command: string): void {
    const attempt = this.#atWork.get(command)?.attempt;
    this.end(command);
    if (attempt !== undefined) this.#next.set(command, attempt + 1);
    this.onRetried?.();
  }

  /** When the next attempt begins, as its code sees it: when it was due, whenever that was done. */
  repeatAt(command: string, at: EpochMs): void {
    this.#due.set(command, at);
  }
  dueAt(command: string): EpochMs | undefined {
    return this.#due.get(command);
  }

  /** G12. Their code is told, what it waits for is let go. Those that have not begun do not begin. */
  stop(nodes: readonly StoppedNode[], error: RepriseError): void {
    const execution = this.#execution;
    const commands = new Set(nodes.map(({ command }) => command));
    execution.asks = execution.asks.filter((ask) => ask.ask !== "operation" || !commands.has(ask.command));
    execution.asks.push({ ask: "stop-nodes", nodes, error });
    for (const command of commands) {
      const scope = this.#atWork.get(command);
      if (scope === undefined) continue;
      scope.stopped = error;
      const waits = execution.waits.all().filter(({ node }) => node === scope);
      execution.abandon(waits);
      for (const wait of waits) execution.fail(wait.command, error);
    }
  }
}
