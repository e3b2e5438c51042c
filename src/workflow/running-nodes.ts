// Running nodes: the attempts of a graph's nodes whose code is running in an execution.
//
// running-nodes.N1. A node is waiting while its code awaits a task, a child or a promise: these can settle while no worker holds
//   the run. Operations (`ctx.run`, `ctx.tx`) run in this process and do not count, unless they wait for their budget. Recorded
//   answers do not count either.
// running-nodes.N2. When an attempt ends, its open requests are dropped and further requests are ignored.

import { invariant, type EpochMs, type RepriseError } from "../base/index.ts";
import { nodeCommandOf } from "../kernel/index.ts";
import type { StoppedNode } from "./command-request.ts";
import type { Execution } from "./execution.ts";
import { callInNode, type NodeMessage, type NodeScope } from "./scope.ts";
import type { Wait } from "./waits.ts";

/** A message of a node that has a result, with its command id. */
export interface SentNodeMessage extends NodeMessage {
  /** `Node(3.0)#0/Message(0)` */
  readonly command: string;
}

const NOTHING: readonly never[] = [];

export class RunningNodes {
  readonly #execution: Execution;
  readonly #running = new Map<string, NodeScope>();
  /** The next attempt of nodes that are between two attempts. */
  #next: Map<string, number> | undefined;
  /** When the next attempt starts. */
  #due: Map<string, EpochMs> | undefined;
  /** Called for every attempt that will be repeated. */
  onRetried: (() => void) | undefined;
  /** Called for every node that has ended. The journal has its result; the commit may not be durable yet. */
  onCompleted: ((command: string, at: EpochMs) => void) | undefined;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  get count(): number {
    return this.#running.size;
  }

  /** The code of a node is running and awaits nothing of `ctx`. */
  get isBusy(): boolean {
    for (const { open } of this.#running.values()) if (open === 0) return true;
    return false;
  }

  isRunning(command: string): boolean {
    return this.#running.has(command);
  }

  /** The running attempt, or the next one; undefined for a node that has not been attempted here. */
  attemptOf(command: string): number | undefined {
    return this.#running.get(command)?.attempt ?? this.#next?.get(command);
  }

  call<T>(scope: NodeScope, code: () => T): T {
    this.#running.set(scope.command, scope);
    if (scope.attempt > 0) this.#next?.delete(scope.command);
    this.#due?.delete(scope.command);
    return callInNode(scope, this.#execution.host.nodeGuard, code);
  }

  /** The running attempt of a node. */
  scopeOf(command: string): NodeScope | undefined {
    return this.#running.get(command);
  }

  /** running-nodes.N1 */
  opened(node: NodeScope, { type, isRecorded: kept }: Wait): void {
    node.open += 1;
    if (type === "Operation" || kept === true) return;
    node.waiting += 1;
    if (node.waiting === 1) this.#execution.host.onNodeWaiting?.(node.command, true);
  }

  closed(node: NodeScope, { type, isRecorded: kept }: Wait): void {
    node.open -= 1;
    invariant(node.open >= 0, "A node closes only what it has opened.");
    // A recorded answer sets the time itself.
    if (kept === true) return;
    node.answeredSeq = undefined;
    node.time = Math.max(node.time, this.#execution.deliveries.time);
    if (type === "Operation") return;
    node.waiting -= 1;
    if (node.waiting === 0) this.#execution.host.onNodeWaiting?.(node.command, false);
  }

  /** running-nodes.N1. An operation of a node waits for its budget, or no longer does. */
  setUnfunded(operation: string, isWaiting: boolean): void {
    const node = this.#running.get(nodeCommandOf(operation));
    if (node === undefined) return;
    node.waiting += isWaiting ? 1 : -1;
    if (node.waiting === (isWaiting ? 1 : 0)) this.#execution.host.onNodeWaiting?.(node.command, isWaiting);
  }

  /** running-nodes.N2. Returns the messages that the code of the attempt has sent. */
  end(command: string): readonly SentNodeMessage[] {
    const scope = this.#running.get(command);
    if (scope === undefined) return NOTHING;
    scope.isOver = true;
    this.#execution.waits.dropAnswers(scope.prefix);
    this.#running.delete(command);
    // Most nodes await nothing when they end.
    if (scope.open > 0) this.#execution.abandon(this.#execution.waits.dropUnless(({ node }) => node !== scope));
    const { messages = NOTHING, prefix } = scope;
    return messages.map((message, index) => ({ ...message, command: `${prefix}Message(${index})` }));
  }

  /** running-nodes.N2. The attempt ended and will be repeated. */
  retried(command: string): void {
    const attempt = this.#running.get(command)?.attempt;
    this.end(command);
    if (attempt !== undefined) (this.#next ??= new Map()).set(command, attempt + 1);
    this.onRetried?.();
  }

  /** The start of the next attempt as its code sees it: when it was due, not when it ran. */
  repeatAt(command: string, at: EpochMs): void {
    (this.#due ??= new Map()).set(command, at);
  }
  dueAt(command: string): EpochMs | undefined {
    return this.#due?.get(command);
  }

  /** rules.G12. Rejects what their code awaits. Nodes that have not started do not start. */
  stop(nodes: readonly StoppedNode[], error: RepriseError): void {
    const execution = this.#execution;
    const commands = new Set(nodes.map(({ command }) => command));
    execution.requests = execution.requests.filter(
      (request) => request.kind !== "operation" || !commands.has(request.command),
    );
    execution.requests.push({ kind: "stop-nodes", nodes, error });
    for (const command of commands) {
      const scope = this.#running.get(command);
      if (scope === undefined) continue;
      scope.stopped = error;
      const waits = execution.waits.all().filter(({ node }) => node === scope);
      execution.abandon(waits);
      for (const wait of waits) execution.deliveries.fail(wait.command, error);
    }
  }
}
