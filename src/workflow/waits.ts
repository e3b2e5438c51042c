// Waits: the promises code was given and that have not settled.
//
// E4. A command settles at most once; what comes later for it is dropped.

import type { CommandType } from "../kernel/index.ts";
import { KeptAnswers } from "./kept-answers.ts";
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
  /** Its answer was in the journal before it was asked for: it comes in its turn. */
  readonly kept?: boolean;
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
  /** The order of those of nodes. */
  #answers: KeptAnswers | undefined;

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
    const settle = this.#early?.get(command);
    const isKept = settle !== undefined && node !== undefined && this.#answers?.isInLine(command) === true;
    const wait: Wait = node === undefined ? fields : { ...fields, node, kept: isKept, closing: closing || isKept };
    if (settle === undefined || isKept) {
      this.#open.set(command, wait);
      if (node !== undefined) this.#nodes?.opened(node, wait);
      if (isKept) this.#answers?.asked(command);
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
    this.#answers ??= new KeptAnswers((asked) => this.#open.has(asked));
    this.#answers.keep(command);
  }

  hasEarly(command: string): boolean {
    return this.#early?.has(command) ?? false;
  }

  /** A node waits for the next of its answers, which is there. */
  get hasNext(): boolean {
    return this.#answers?.hasNext === true;
  }

  /** Gives every node that waits for it the next of its answers; true when there was one. The code has to be done before it is called again. */
  giveNext(): boolean {
    const next = this.#answers?.takeNext() ?? [];
    for (const command of next) {
      const settle = this.#early?.get(command);
      this.#early?.delete(command);
      if (settle !== undefined) this.settle(command, settle);
    }
    return next.length > 0;
  }

  /** A node waits for an answer that is there, and has not asked for one that came before it. */
  get isHeld(): boolean {
    return this.#answers?.isHeld === true;
  }
  /** It need not ask for that one. */
  skipUnasked(): void {
    this.#answers?.skip();
  }

  /** An attempt is over. */
  forgetNext(prefix: string): void {
    this.#answers?.forget(prefix);
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
