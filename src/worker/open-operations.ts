// OpenOperations: the operations and graph nodes of a run in memory that have not ended.
//
// An operation has no attempt while it waits for a slot, for its retry, or for a paused run to be resumed (control.C1).

import { Fifo } from "../base/index.ts";
import type { OperationRequest } from "../workflow/index.ts";
import type { Attempt } from "./attempt.ts";
import type { PendingTransaction } from "./transactions.ts";

type Attempts = Map<string, Attempt | undefined>;

const NONE: Attempts = new Map<string, never>();

export class OpenOperations {
  /** Runs without operations share `NONE`. */
  #attempts = NONE;
  /** Requested while the run was paused. */
  #parked: OperationRequest[] | undefined;
  /** Those that wait for their budget. */
  #unfunded: Map<string, OperationRequest> | undefined;
  /** Most runs have none. */
  #transactions: Fifo<PendingTransaction> | undefined;

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
    this.#set(command, undefined);
  }

  start(command: string, attempt: Attempt): void {
    this.#set(command, attempt);
  }

  #set(command: string, attempt: Attempt | undefined): void {
    if (this.#attempts === NONE) this.#attempts = new Map();
    this.#attempts.set(command, attempt);
  }

  /** False when it was not open. */
  end(command: string): boolean {
    this.#unfunded?.delete(command);
    return this.#attempts.delete(command);
  }

  /** Aborts all operations, except those that are kept. */
  abandon(reason: () => unknown, isKept: (command: string) => boolean): void {
    if (this.#attempts.size === 0) return;
    const abandoned = [...this.#attempts].filter(([command]) => !isKept(command));
    for (const [command] of abandoned) this.end(command);
    for (const [, attempt] of abandoned) attempt?.abandon(reason());
  }

  /** Every operation is a node that waits, or waits for its budget; none is about to start. */
  get areSuspended(): boolean {
    for (const [command, attempt] of this.#attempts)
      if (attempt?.isSuspended !== true && this.#unfunded?.has(command) !== true) return false;
    return true;
  }

  /** No function is running; operations that have not started do not count. */
  get areIdle(): boolean {
    for (const attempt of this.#attempts.values()) if (attempt?.isSuspended === false) return false;
    return true;
  }

  // ── budgets ──

  waitForBudget(request: OperationRequest): void {
    this.wait(request.command);
    (this.#unfunded ??= new Map()).set(request.command, request);
  }

  get unfunded(): readonly string[] {
    return this.#unfunded === undefined ? [] : [...this.#unfunded.keys()];
  }

  /** Those of these commands that wait. */
  takeUnfunded(commands: readonly string[]): readonly OperationRequest[] {
    const taken = commands.flatMap((command) => this.#unfunded?.get(command) ?? []);
    for (const { command } of taken) this.#unfunded?.delete(command);
    return taken;
  }

  // ── pausing (control.C1) ──

  park(request: OperationRequest): void {
    (this.#parked ??= []).push(request);
  }

  unpark(): readonly OperationRequest[] {
    const parked = this.#parked ?? [];
    this.#parked = undefined;
    return parked;
  }

  // ── transactions ──

  addTransaction(waiting: PendingTransaction): void {
    (this.#transactions ??= new Fifo()).push(waiting);
  }

  get hasTransaction(): boolean {
    return this.#transactions !== undefined && this.#transactions.length > 0;
  }

  takeTransaction(): PendingTransaction | undefined {
    return this.#transactions?.shift();
  }
}
