// Signals: messages of a run, in the order of its journal, and the waits of the code that take them.
//
// M1. A signal goes to the oldest wait that names it, once; while there is none it is kept.
// M2. Code sees a signal when its entry is delivered, never earlier. Until then it is on its way, and is counted on already:
//     a wait that will get it is closing, so that nothing else settles that wait.
// M3. A wait that finds its signal kept takes no number and leaves no entry: that it was kept follows from the journal.

import { encode, Fifo, RepriseError } from "../base/index.ts";
import type { StrictCheck } from "./commands.ts";
import { receiveCreatedData, receiveId } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import type { RecordedEntry } from "./recorded.ts";
import { never, refused } from "./refusals.ts";
import { refuseInsideStep } from "./scope.ts";
import type { Wait } from "./waits.ts";

/** A signal nobody has taken. */
export interface Signalled {
  readonly name: string;
  readonly value: unknown;
}

interface Kept extends Signalled {
  /** Its place among all signals. */
  readonly order: number;
  /** The wait that took it when the journal was written; only changed code leaves such a signal lying. */
  readonly command: string;
}

interface OnItsWay extends Signalled {
  readonly command: string;
  /** A wait made since it was journaled will get it. */
  taken: boolean;
}

interface Receive {
  readonly command: string;
  readonly names: readonly string[];
  /** Asked for one name: the value alone is the answer. */
  readonly isSingle: boolean;
}

export class Signals {
  #receives: Receive[] = [];
  /** Made when the first one comes: most runs have none. */
  #kept: Map<string, Fifo<Kept>> | undefined;
  readonly #onTheirWay = new Fifo<OnItsWay>();
  #count = 0;

  /** What the code never took, in the order it came. */
  left(): readonly Signalled[] {
    return [...this.kept(), ...this.#onTheirWay.all()].map(({ name, value }) => ({ name, value }));
  }

  /** Without those on their way. */
  kept(): readonly Signalled[] {
    const kept = [...(this.#kept?.values() ?? [])].flatMap((queue) => queue.all());
    kept.sort((a, b) => a.order - b.order);
    return kept.map(({ name, value }) => ({ name, value }));
  }

  /** M2. An entry is about to be written: the wait it will settle, if there is one. */
  announce({ waits, cancellation }: Execution, name: string, value: unknown): Wait | undefined {
    const receive = this.#receives.find(({ command, names }) => {
      const wait = names.includes(name) ? waits.get(command) : undefined;
      // Made since a cancel was journaled, it is rejected before it could be given this.
      return wait?.closing === false && (wait.shielded || !cancellation.announced);
    });
    this.#onTheirWay.push({ name, value, command: receive?.command ?? "", taken: false });
    return receive && waits.get(receive.command);
  }

  /** M1 */
  deliver(execution: Execution, { command, data, seq }: Omit<RecordedEntry, "type" | "at">): void {
    this.#onTheirWay.shift();
    const { waits } = execution;
    const name = String(data["name"]);
    const value = data["value"];
    this.#receives = this.#receives.filter((receive) => waits.get(receive.command) !== undefined);
    const receive = this.#receives.find(({ names }) => names.includes(name));
    if (execution.commands.strict && command !== "" && command !== receive?.command)
      return execution.violate({
        message: `Signal mismatch at ${command}: expected ${receive?.command ?? "nobody"} to receive '${name}', got ${command}`,
        expected: receive?.command,
        actual: command,
        where: command,
        seq: execution.commands.findDelivery("SignalReceived", command) ?? seq,
      });
    if (receive === undefined) return this.#keep({ name, value, command, order: this.#count++ });
    waits.settle(receive.command, (wait) => wait.resolve(answerOf(receive, wait.timed, { name, value })));
  }

  #keep(signal: Kept): void {
    this.#kept ??= new Map();
    let queue = this.#kept.get(signal.name);
    if (queue === undefined) this.#kept.set(signal.name, (queue = new Fifo()));
    queue.push(signal);
  }

  /** The oldest kept signal among the names. */
  findKept(names: readonly string[]): Kept | undefined {
    if (this.#kept === undefined) return undefined;
    let oldest: Kept | undefined;
    for (const name of names) {
      const first = this.#kept.get(name)?.first;
      if (first !== undefined && (oldest === undefined || first.order < oldest.order)) oldest = first;
    }
    return oldest;
  }

  take(signal: Kept): void {
    this.#kept?.get(signal.name)?.shift();
  }

  /** M2. Adds a wait; true when a signal for it is on its way. */
  wait({ waits }: Execution, receive: Receive): boolean {
    this.#receives = this.#receives.filter(({ command }) => waits.get(command) !== undefined);
    this.#receives.push(receive);
    const coming = this.#onTheirWay
      .all()
      .find(({ name, command, taken }) => command === "" && !taken && receive.names.includes(name));
    if (coming === undefined) return false;
    coming.taken = true;
    return true;
  }
}

/** A port without payload answers `true` to a wait that could have run out, so that the two can be told apart. */
function answerOf({ isSingle }: Pick<Receive, "isSingle">, timed: boolean, { name, value }: Signalled): unknown {
  if (!isSingle) return { name, value };
  return value === undefined && timed ? true : value;
}

/** ctx.receive */
export function askReceive(
  execution: Execution,
  what: string | readonly string[],
  timeoutMs: number | undefined,
): Promise<unknown> {
  const { refusal, signals } = execution;
  refuseInsideStep();
  if (refusal !== undefined) return refused(refusal);
  const isSingle = typeof what === "string";
  const names = isSingle ? [what] : [...what];
  const undeclared = findUndeclared(execution, names);
  if (undeclared !== undefined) return refused(undeclared);
  if (execution.stop !== undefined) return never();
  const timed = timeoutMs !== undefined;
  const kept = signals.findKept(names);
  if (kept !== undefined && kept.command === "") {
    // M3
    signals.take(kept);
    return Promise.resolve(answerOf({ isSingle }, timed, kept));
  }
  const command = execution.command(
    "Promise",
    "CreatePromise",
    { promiseId: receiveId(names) },
    compare(names, timeoutMs),
  );
  if (command === undefined) return never();
  if (kept !== undefined) {
    signals.take(kept);
    return Promise.resolve(answerOf({ isSingle }, timed, kept));
  }
  const isComing = signals.wait(execution, { command: command.id, names, isSingle });
  if (!command.known) {
    const data = receiveCreatedData(command.index, names, timeoutMs, execution.isShielded);
    execution.asks.push({ ask: "promise", command: command.id, data, timeoutMs: isComing ? undefined : timeoutMs });
  }
  const promise = execution.open("Promise", command.id, receiveId(names), timed);
  if (isComing) execution.close(command.id);
  return promise;
}

function findUndeclared({ body }: Execution, names: readonly unknown[]): RepriseError | undefined {
  if (names.length === 0)
    return new RepriseError("BAD_OPTIONS", `Workflow ${body.name}: ctx.receive expects at least one signal, got none.`);
  for (const name of names)
    if (typeof name !== "string" || !Object.hasOwn(body.ports, name) || body.ports[name]?.port !== "signal")
      return new RepriseError(
        "UNKNOWN_PORT",
        `Workflow ${body.name} receives the signal ${String(name)}, which is not among its ports. Declare it: ports: { ${String(name)}: signal() }.`,
      );
  return undefined;
}

/** The names are compared as the command's name; a name that holds the separator is told apart here. */
function compare(names: readonly string[], timeoutMs: number | undefined): StrictCheck {
  return ({ data }) => {
    const [now, then] = [encode(names), encode(data["receives"])];
    if (now !== then) return { what: "Signal names", expected: now, actual: then };
    if (timeoutMs !== data["timeout"]) return { what: "Timeout", expected: timeoutMs, actual: data["timeout"] };
    return undefined;
  };
}
