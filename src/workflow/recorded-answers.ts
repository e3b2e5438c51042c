// Recorded answers: the order in which nodes that run again receive their results from the journal.
//
// recorded-answers.K1. An attempt receives its answers in recorded order, one at a time, and its code runs until it waits in
//   between: a race has the same winner, and requests that depend on the winner have the same order.
// recorded-answers.K2. An answer is held back until the code has requested the answers before it. `skip` releases code that never
//   requests one of them because it has changed.

import { nodePrefixOf } from "../kernel/index.ts";

/** The answers of one attempt. */
interface AnswerQueue {
  readonly commands: string[];
  next: number;
}

export class RecordedAnswers {
  /** By the prefix of their commands. */
  readonly #queues = new Map<string, AnswerQueue>();
  /** The code has requested their next answer. */
  readonly #ready = new Set<AnswerQueue>();
  /** The code has requested an answer behind the next one. */
  readonly #blocked = new Set<AnswerQueue>();
  /** recorded-answers.K2. Delivered as soon as the code requests them. */
  #skipped: Set<string> | undefined;
  readonly #isRequested: (command: string) => boolean;

  constructor(isRequested: (command: string) => boolean) {
    this.#isRequested = isRequested;
  }

  /** Answers are added in journal order. */
  add(command: string): void {
    const prefix = nodePrefixOf(command);
    if (prefix === "") return;
    const queue = this.#queues.get(prefix);
    if (queue === undefined) this.#queues.set(prefix, { commands: [command], next: 0 });
    else queue.commands.push(command);
  }

  requested(command: string): void {
    const queue = this.#queues.get(nodePrefixOf(command));
    if (queue !== undefined) (this.#isReady(queue) ? this.#ready : this.#blocked).add(queue);
  }

  #isReady({ commands, next }: AnswerQueue): boolean {
    const command = commands[next];
    return command !== undefined && this.#isRequested(command);
  }

  get hasNext(): boolean {
    return this.#ready.size > 0;
  }

  /** recorded-answers.K2 */
  get isBlocked(): boolean {
    return this.#ready.size === 0 && this.#blocked.size > 0;
  }

  /** recorded-answers.K1. The next answer of every attempt that has requested it. Drain before calling it again. */
  takeNext(): readonly string[] {
    const queues = [...this.#ready];
    this.#ready.clear();
    const taken = queues.map((queue) => queue.commands[queue.next++]!);
    for (const queue of queues) if (this.#isReady(queue)) this.#ready.add(queue);
    return taken;
  }

  /** recorded-answers.K2. Skips answers that the code has not requested. */
  skip(): void {
    const blocked = [...this.#blocked];
    this.#blocked.clear();
    for (const queue of blocked) {
      const next = queue.commands.findIndex((command, at) => at >= queue.next && this.#isRequested(command));
      if (next < 0) continue;
      for (const command of queue.commands.slice(queue.next, next)) (this.#skipped ??= new Set()).add(command);
      queue.next = next;
      this.#ready.add(queue);
    }
  }

  /** Whether the answer is delivered in recorded order. */
  isQueued(command: string): boolean {
    return this.#skipped?.has(command) !== true && this.#queues.has(nodePrefixOf(command));
  }

  /** Drops the answers of an attempt that has ended. */
  drop(prefix: string): void {
    const queue = this.#queues.get(prefix);
    if (queue === undefined) return;
    this.#queues.delete(prefix);
    this.#ready.delete(queue);
    this.#blocked.delete(queue);
  }
}
