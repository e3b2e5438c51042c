// Waits: the promises that the code holds and that have not settled (execution.E4).

import { invariant } from "../base/index.ts";
import type { CommandType } from "../kernel/index.ts";
import { RecordedAnswers } from "./recorded-answers.ts";
import type { NodeScope } from "./scope.ts";
import type { StepUndo } from "./undo.ts";

export interface Wait {
  readonly command: string;
  readonly type: CommandType;
  /** The port of a promise, the id of a child, otherwise the name in the code. */
  readonly name: string;
  /** The queue has a timer for it. */
  readonly timed: boolean;
  /** Requested inside `ctx.shield`, or by an undo: it survives a cancel. */
  readonly shielded: boolean;
  /** How to undo the step. A cancel lets the step finish, to know whether there is something to undo. */
  readonly undo: StepUndo | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** The attempt of a graph's node that waits. */
  readonly node?: NodeScope;
  /** The journal had its result before the code requested it; it is delivered in recorded order. */
  readonly isRecorded?: boolean;
  /** The journal has its terminal entry; the code may not have received it yet. */
  closing: boolean;
}

/** Whether a cancel of the run leaves it running. */
function survivesCancel({ shielded, undo }: Wait): boolean {
  return shielded || undo !== undefined;
}

type Settle = (wait: Wait) => void;
type NewWait = Pick<Wait, "type" | "name" | "timed" | "shielded" | "undo" | "closing">;

const ignore = (): void => {};

/** Notified of what the nodes of a graph wait for. */
interface NodeWatcher {
  opened(node: NodeScope, wait: Wait): void;
  closed(node: NodeScope, wait: Wait): void;
}

export class Waits {
  readonly #open = new Map<string, Wait>();
  readonly #nodes: NodeWatcher | undefined;
  /** Completions that precede their command: after a code change, or for nodes that run again. */
  #early: Map<string, Settle> | undefined;
  /** The recorded order of the early completions of nodes. */
  #answers: RecordedAnswers | undefined;

  constructor(nodes?: NodeWatcher) {
    this.#nodes = nodes;
  }

  /** A promise for the command, and its early completion. */
  add(
    command: string,
    { type, name, timed, shielded, undo, closing }: NewWait,
    node?: NodeScope,
  ): { readonly promise: Promise<unknown>; readonly early: (() => void) | undefined } {
    // execution.E4
    invariant(!this.#open.has(command), "A command is opened once.");
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // A rejection that the workflow does not await must not end the process.
    promise.catch(ignore);
    const fields = { command, type, name, timed, shielded, undo, resolve, reject, closing };
    const settle = this.#early?.get(command);
    const isKept = settle !== undefined && node !== undefined && this.#answers?.isQueued(command) === true;
    const wait: Wait =
      node === undefined ? fields : { ...fields, node, isRecorded: isKept, closing: closing || isKept };
    if (settle === undefined || isKept) {
      this.#open.set(command, wait);
      if (node !== undefined) this.#nodes?.opened(node, wait);
      if (isKept) this.#answers?.requested(command);
      return { promise, early: undefined };
    }
    this.#early?.delete(command);
    return { promise, early: () => settle(wait) };
  }

  get isEmpty(): boolean {
    return this.#open.size === 0;
  }

  get(command: string): Wait | undefined {
    return this.#open.get(command);
  }

  /** False when the code does not wait for it. */
  settle(command: string, settle: Settle): boolean {
    const wait = this.#open.get(command);
    if (wait === undefined) return false;
    this.#open.delete(command);
    if (wait.node !== undefined) this.#nodes?.closed(wait.node, wait);
    settle(wait);
    return true;
  }

  /** Removes and returns all waits but the kept ones. Their promises never settle. */
  dropUnless(isKept: (wait: Wait) => boolean): readonly Wait[] {
    const dropped = this.all().filter((wait) => !isKept(wait));
    for (const wait of dropped) {
      this.#open.delete(wait.command);
      if (wait.node !== undefined) this.#nodes?.closed(wait.node, wait);
    }
    return dropped;
  }

  /** Keeps the completion of a recorded command that the code has not requested yet. */
  keepEarly(command: string, settle: Settle): void {
    this.#early ??= new Map();
    this.#early.set(command, settle);
    this.#answers ??= new RecordedAnswers((command) => this.#open.has(command));
    this.#answers.add(command);
  }

  hasEarly(command: string): boolean {
    return this.#early?.has(command) ?? false;
  }

  /** A node waits for its next recorded answer. */
  get hasNext(): boolean {
    return this.#answers?.hasNext === true;
  }

  /** Delivers the next recorded answer to every node that waits for it; true if there was one. Drain before calling it again. */
  deliverNext(): boolean {
    const next = this.#answers?.takeNext() ?? [];
    for (const command of next) {
      const settle = this.#early?.get(command);
      this.#early?.delete(command);
      if (settle !== undefined) this.settle(command, settle);
    }
    return next.length > 0;
  }

  /** A node waits for a recorded answer, and has not requested an earlier one. */
  get isBlocked(): boolean {
    return this.#answers?.isBlocked === true;
  }
  /** Lets nodes skip answers that they have not requested. */
  skipUnrequested(): void {
    this.#answers?.skip();
  }

  /** Drops the answers of an attempt that has ended. */
  dropAnswers(prefix: string): void {
    this.#answers?.drop(prefix);
  }

  /** Waits for a port that nothing is about to settle, oldest first. */
  openOn(port: string): readonly Wait[] {
    return this.on(port).filter(({ closing }) => !closing);
  }

  /** Waits that nothing is about to settle, oldest first. */
  open(): readonly Wait[] {
    return this.all().filter(({ closing }) => !closing);
  }

  /** Whether the code waits for a task or a child. */
  get awaitsWork(): boolean {
    for (const { type, closing } of this.#open.values())
      if (!closing && (type === "Task" || type === "ChildWorkflow")) return true;
    return false;
  }

  /** The waits that a cancel rejects. */
  cancellable(): readonly Wait[] {
    return this.open().filter((wait) => !survivesCancel(wait));
  }

  /** Whether the work of this command survives a cancel. */
  survivesCancel(command: string): boolean {
    const wait = this.#open.get(command);
    return wait !== undefined && survivesCancel(wait);
  }

  /** Oldest first. */
  on(port: string): readonly Wait[] {
    return [...this.#open.values()].filter(({ type, name }) => type === "Promise" && name === port);
  }

  /** Oldest first. */
  all(): readonly Wait[] {
    return [...this.#open.values()];
  }
}
