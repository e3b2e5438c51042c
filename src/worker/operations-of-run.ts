// OperationsOfRun: the operations of a run in memory that have not ended, nodes of a graph among them.
//
// One has no attempt while it waits for a slot, for its next try, or for a paused run to go on (C1).

import { Fifo } from "../base/index.ts";
import type { OperationAsk } from "../workflow/index.ts";
import type { Attempt } from "./attempt.ts";
import type { WaitingTransaction } from "./transactions.ts";

export class OperationsOfRun {
  readonly #attempts = new Map<string, Attempt | undefined>();
  /** They came up while the run was paused. */
  #parked: OperationAsk[] | undefined;
  /** Most runs have none. */
  #transactions: Fifo<WaitingTransaction> | undefined;

  get size(): number {
    return this.#attempts.size;
  }

  has(command: string): boolean {
    return this.#attempts.has(command);
  }

  attemptOf(command: string): Attempt | undefined {
    return this.#attempts.get(command);
  }

  wait(command: string): void {
    this.#attempts.set(command, undefined);
  }

  start(command: string, attempt: Attempt): void {
    this.#attempts.set(command, attempt);
  }

  /** False when it was not among them any more. */
  end(command: string): boolean {
    return this.#attempts.delete(command);
  }

  /** Nobody waits for them any more. */
  abandon(reason: () => unknown, isKept: (command: string) => boolean): void {
    if (this.#attempts.size === 0) return;
    const abandoned = [...this.#attempts].filter(([command]) => !isKept(command));
    for (const [command] of abandoned) this.#attempts.delete(command);
    for (const [, attempt] of abandoned) attempt?.abandon(reason());
  }

  /** Nothing is at work but nodes that wait, and nothing is about to be. */
  get allWait(): boolean {
    for (const attempt of this.#attempts.values()) if (attempt?.isSuspended !== true) return false;
    return true;
  }

  /** No code is at work; what has not begun does not count. */
  get areAtRest(): boolean {
    for (const attempt of this.#attempts.values()) if (attempt?.isSuspended === false) return false;
    return true;
  }

  // ── pausing (C1) ──

  park(ask: OperationAsk): void {
    (this.#parked ??= []).push(ask);
  }

  unpark(): readonly OperationAsk[] {
    const parked = this.#parked ?? [];
    this.#parked = undefined;
    return parked;
  }

  // ── transactions ──

  addTransaction(waiting: WaitingTransaction): void {
    (this.#transactions ??= new Fifo()).push(waiting);
  }

  get hasTransaction(): boolean {
    return this.#transactions !== undefined && this.#transactions.length > 0;
  }

  takeTransaction(): WaitingTransaction | undefined {
    return this.#transactions?.shift();
  }
}
