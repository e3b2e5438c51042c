// Waits: the promises code was given and that have not settled.
//
// E4. A command settles at most once; what comes later for it is dropped.

import type { CommandType } from "../kernel/index.ts";
import type { NodeScope } from "./scope.ts";
import type { StepUndo } from "./undo.ts";

export interface Wait {
  readonly command: string;
  readonly type: CommandType;
  /** The port of a promise, the id of a child, else the name in the code. */
  readonly name: string;
  /** It has a timer in the queue. */
  readonly timed: boolean;
  /** Asked for inside `ctx.shield`, or by an undo: a cancel leaves it. */
  readonly shielded: boolean;
  /** How to take the step back; a cancel lets it finish, so that it is known whether there is anything to take back. */
  readonly undo: StepUndo | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** The attempt of a graph's node that waits. */
  readonly node?: NodeScope;
  /** Its terminal entry is in the journal, though perhaps not delivered yet. */
  closing: boolean;
}

/** A cancel leaves what works for it alone. */
export function outlivesCancel({ shielded, undo }: Wait): boolean {
  return shielded || undo !== undefined;
}

type Settle = (wait: Wait) => void;
type NewWait = Pick<Wait, "type" | "name" | "timed" | "shielded" | "undo" | "closing">;

const ignore = (): void => {};

/** Told of what the nodes of a graph wait for. */
interface NodeWatcher {
  opened(node: NodeScope, wait: Wait): void;
  closed(node: NodeScope, wait: Wait): void;
}

export class Waits {
  readonly #open = new Map<string, Wait>();
  readonly #nodes: NodeWatcher | undefined;
  /** Completions that came before their command: only changed code can do that, and nodes that are run again. */
  #early: Map<string, Settle> | undefined;
  /** Those of nodes, by what their commands begin with, in journal order. */
  #earlyOfNodes: Map<string, string[]> | undefined;

  constructor(nodes?: NodeWatcher) {
    this.#nodes = nodes;
  }

  /** A promise for the command, and what already came for it. */
  add(
    command: string,
    { type, name, timed, shielded, undo, closing }: NewWait,
    node?: NodeScope,
  ): { readonly promise: Promise<unknown>; readonly early: (() => void) | undefined } {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // A rejection nobody awaits is the workflow's business, not the process's.
    promise.catch(ignore);
    const fields = { command, type, name, timed, shielded, undo, resolve, reject, closing };
    const wait: Wait = node === undefined ? fields : { ...fields, node };
    const settle = this.#early?.get(command);
    // Of a node's answers the first in the journal is given first, whichever was asked for first: a race has its winner again.
    const isQueued = settle !== undefined && node !== undefined;
    if (isQueued) wait.closing = true;
    if (settle === undefined || isQueued) {
      this.#open.set(command, wait);
      if (node !== undefined) this.#nodes?.opened(node, wait);
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

  /** False when nobody waits. */
  settle(command: string, settle: Settle): boolean {
    const wait = this.#open.get(command);
    if (wait === undefined) return false;
    this.#open.delete(command);
    if (wait.node !== undefined) this.#nodes?.closed(wait.node, wait);
    settle(wait);
    return true;
  }

  /** Forgets all but those that are kept, and answers them; their promises never settle. */
  dropUnless(isKept: (wait: Wait) => boolean): readonly Wait[] {
    const dropped = this.all().filter((wait) => !isKept(wait));
    for (const wait of dropped) {
      this.#open.delete(wait.command);
      if (wait.node !== undefined) this.#nodes?.closed(wait.node, wait);
    }
    return dropped;
  }

  /** Kept for a command the journal has and the code has not asked for yet. */
  keepEarly(command: string, settle: Settle): void {
    this.#early ??= new Map();
    this.#early.set(command, settle);
    const prefix = command.slice(0, command.lastIndexOf("/") + 1);
    if (prefix === "") return;
    this.#earlyOfNodes ??= new Map();
    this.#earlyOfNodes.set(prefix, [...(this.#earlyOfNodes.get(prefix) ?? []), command]);
  }

  hasEarly(command: string): boolean {
    return this.#early?.has(command) ?? false;
  }

  /** A node waits for the next of its answers, which is there. */
  get hasNext(): boolean {
    for (const [next] of this.#earlyOfNodes?.values() ?? []) if (this.#open.has(next!)) return true;
    return false;
  }

  /** Gives every node that waits for it the next of its answers; true when there was one. The code has to be done before it is called again. */
  giveNext(): boolean {
    let given = false;
    for (const [prefix, commands] of this.#earlyOfNodes ?? []) {
      const [next] = commands;
      const settle = this.#early?.get(next!);
      if (settle === undefined || !this.settle(next!, settle)) continue;
      given = true;
      this.#early?.delete(next!);
      commands.shift();
      if (commands.length === 0) this.#earlyOfNodes?.delete(prefix);
    }
    return given;
  }

  /** An attempt is over. */
  forgetNext(prefix: string): void {
    this.#earlyOfNodes?.delete(prefix);
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
