// KeptAnswers: in which order the code of nodes that are run again gets what the journal has for it.
//
// K1. An attempt gets its answers in the order it got them then, one at a time, with all its code can do done in between:
//     a race has the same winner, and calls that follow from who was faster are asked for in the same order again.
// K2. An answer waits until the code has asked for those before it. Code that never does, because it has changed, is not
//     left waiting for ever: `skip` lets it have the next it did ask for.

/** The answers of one attempt. */
interface Line {
  readonly commands: string[];
  next: number;
}

export class KeptAnswers {
  /** By what their commands begin with. */
  readonly #lines = new Map<string, Line>();
  /** Their next answer was asked for. */
  readonly #ready = new Set<Line>();
  /** An answer behind the next one was asked for. */
  readonly #held = new Set<Line>();
  /** K2. Given as soon as they are asked for. */
  #passed: Set<string> | undefined;
  readonly #isAsked: (command: string) => boolean;

  constructor(isAsked: (command: string) => boolean) {
    this.#isAsked = isAsked;
  }

  /** An answer is read from the journal, after those before it. */
  keep(command: string): void {
    const prefix = prefixOf(command);
    if (prefix === "") return;
    const line = this.#lines.get(prefix);
    if (line === undefined) this.#lines.set(prefix, { commands: [command], next: 0 });
    else line.commands.push(command);
  }

  asked(command: string): void {
    const line = this.#lines.get(prefixOf(command));
    if (line !== undefined) (this.#isReady(line) ? this.#ready : this.#held).add(line);
  }

  #isReady({ commands, next }: Line): boolean {
    const command = commands[next];
    return command !== undefined && this.#isAsked(command);
  }

  get hasNext(): boolean {
    return this.#ready.size > 0;
  }

  /** K2 */
  get isHeld(): boolean {
    return this.#ready.size === 0 && this.#held.size > 0;
  }

  /** K1. The next answer of every attempt that has asked for it; the code has to be done before this is called again. */
  takeNext(): readonly string[] {
    const lines = [...this.#ready];
    this.#ready.clear();
    const taken = lines.map((line) => line.commands[line.next++]!);
    for (const line of lines) if (this.#isReady(line)) this.#ready.add(line);
    return taken;
  }

  /** K2. Passes over what nobody has asked for. */
  skip(): void {
    const held = [...this.#held];
    this.#held.clear();
    for (const line of held) {
      const next = line.commands.findIndex((command, at) => at >= line.next && this.#isAsked(command));
      if (next < 0) continue;
      for (const command of line.commands.slice(line.next, next)) (this.#passed ??= new Set()).add(command);
      line.next = next;
      this.#ready.add(line);
    }
  }

  /** Whether an answer waits for others to be asked for. */
  isInLine(command: string): boolean {
    return this.#passed?.has(command) !== true && this.#lines.has(prefixOf(command));
  }

  /** An attempt is over. */
  forget(prefix: string): void {
    const line = this.#lines.get(prefix);
    if (line === undefined) return;
    this.#lines.delete(prefix);
    this.#ready.delete(line);
    this.#held.delete(line);
  }
}

/** The `Node(3.0)#0/` of `Node(3.0)#0/Task(1)`; empty outside of nodes. */
function prefixOf(command: string): string {
  return command.slice(0, command.lastIndexOf("/") + 1);
}
