// Signals: the signals of a run in journal order, and the waits that receive them.
//
// signals.M1. A signal goes to the oldest wait that names it, once. Without such a wait it is buffered.
// signals.M2. The code receives a signal when its entry is delivered. From its announcement until then, the wait that will
//   receive it is closing, so nothing else settles that wait.
// signals.M3. A wait that takes a buffered signal gets no index and no entry: the journal already determines it.

import { encode, Fifo, RepriseError } from "../base/index.ts";
import type { Delivery } from "../kernel/index.ts";
import type { StrictCheck } from "./command-matcher.ts";
import { receiveCreatedData, receiveId } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { never, rejected } from "./refusals.ts";
import { refuseInsideStep } from "./scope.ts";
import type { Wait } from "./waits.ts";

/** A signal that the code has not received. */
export interface SignalMessage {
  readonly name: string;
  readonly value: unknown;
}

interface BufferedSignal extends SignalMessage {
  /** Its position among all signals. */
  readonly order: number;
  /** The wait that received it when the journal was written. Only changed code leaves such a signal buffered. */
  readonly command: string;
}

interface AnnouncedSignal extends SignalMessage {
  readonly command: string;
  /** A wait that was created after the announcement will receive it. */
  taken: boolean;
}

interface Receive {
  readonly command: string;
  readonly names: readonly string[];
  /** One name was requested: the value alone is returned. */
  readonly isSingle: boolean;
}

export class Signals {
  #receives: Receive[] = [];
  /** Undefined in most runs. */
  #buffered: Map<string, Fifo<BufferedSignal>> | undefined;
  readonly #announced = new Fifo<AnnouncedSignal>();
  #count = 0;

  /** Signals that the code has not received, in order. */
  untaken(): readonly SignalMessage[] {
    return [...this.buffered(), ...this.#announced.all()].map(({ name, value }) => ({ name, value }));
  }

  /** Delivered signals that no wait has taken, in order. */
  buffered(): readonly SignalMessage[] {
    const kept = [...(this.#buffered?.values() ?? [])].flatMap((queue) => queue.all());
    kept.sort((a, b) => a.order - b.order);
    return kept.map(({ name, value }) => ({ name, value }));
  }

  /** signals.M2. Called before the entry is appended. Returns the wait that it will settle. */
  announce({ waits, cancellation }: Execution, name: string, value: unknown): Wait | undefined {
    const receive = this.#receives.find(({ command, names }) => {
      const wait = names.includes(name) ? waits.get(command) : undefined;
      // The cancel in the journal rejects a newer wait before this signal could settle it.
      return wait?.closing === false && (wait.shielded || !cancellation.announced);
    });
    this.#announced.push({ name, value, command: receive?.command ?? "", taken: false });
    return receive && waits.get(receive.command);
  }

  /** signals.M1 */
  deliver(execution: Execution, { command, data }: Delivery<"SignalReceived">): void {
    this.#announced.shift();
    const { waits } = execution;
    const { name, value } = data;
    this.#receives = this.#receives.filter((receive) => waits.get(receive.command) !== undefined);
    const receive = this.#receives.find(({ names }) => names.includes(name));
    if (execution.commands.strict && command !== "" && command !== receive?.command)
      return execution.violate({
        message: `the journal recorded that ${command} receives signal '${name}'; in the code ${receive?.command ?? "no wait"} receives it now (at ${command})`,
        expected: receive?.command,
        actual: command,
        where: command,
        seq: execution.commands.findDelivery("SignalReceived", command),
      });
    if (receive === undefined) return this.#buffer({ name, value, command, order: this.#count++ });
    waits.settle(receive.command, (wait) => wait.resolve(answerOf(receive, wait.timed, { name, value })));
  }

  #buffer(signal: BufferedSignal): void {
    this.#buffered ??= new Map();
    let queue = this.#buffered.get(signal.name);
    if (queue === undefined) this.#buffered.set(signal.name, (queue = new Fifo()));
    queue.push(signal);
  }

  /** The oldest buffered signal with one of the names. */
  findBuffered(names: readonly string[]): BufferedSignal | undefined {
    if (this.#buffered === undefined) return undefined;
    let oldest: BufferedSignal | undefined;
    for (const name of names) {
      const first = this.#buffered.get(name)?.first;
      if (first !== undefined && (oldest === undefined || first.order < oldest.order)) oldest = first;
    }
    return oldest;
  }

  take(signal: BufferedSignal): void {
    this.#buffered?.get(signal.name)?.shift();
  }

  /** signals.M2. Adds a wait; true when a signal for it is announced. */
  wait({ waits }: Execution, receive: Receive): boolean {
    this.#receives = this.#receives.filter(({ command }) => waits.get(command) !== undefined);
    this.#receives.push(receive);
    const coming = this.#announced
      .all()
      .find(({ name, command, taken }) => command === "" && !taken && receive.names.includes(name));
    if (coming === undefined) return false;
    coming.taken = true;
    return true;
  }
}

/** Without a payload, a wait with a timeout resolves to `true`: `undefined` means that it timed out. */
function answerOf({ isSingle }: Pick<Receive, "isSingle">, timed: boolean, { name, value }: SignalMessage): unknown {
  if (!isSingle) return { name, value };
  return value === undefined && timed ? true : value;
}

/** ctx.receive */
export function requestReceive(
  execution: Execution,
  what: string | readonly string[],
  timeoutMs: number | undefined,
): Promise<unknown> {
  const { refusal, signals } = execution;
  refuseInsideStep();
  if (refusal !== undefined) return rejected(refusal);
  const isSingle = typeof what === "string";
  const names = isSingle ? [what] : [...what];
  const undeclared = findUndeclared(execution, names);
  if (undeclared !== undefined) return rejected(undeclared);
  if (execution.stop !== undefined) return never();
  const timed = timeoutMs !== undefined;
  const kept = signals.findBuffered(names);
  if (kept !== undefined && kept.command === "") {
    // signals.M3
    signals.take(kept);
    return Promise.resolve(answerOf({ isSingle }, timed, kept));
  }
  const command = execution.issueCommand(
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
    execution.requests.push({
      kind: "promise",
      command: command.id,
      data,
      timeoutMs: isComing ? undefined : timeoutMs,
      since: command.reopened?.at,
    });
  }
  const promise = execution.open("Promise", command.id, receiveId(names), timed);
  if (isComing) execution.close(command.id);
  return promise;
}

function findUndeclared({ body }: Execution, names: readonly unknown[]): RepriseError | undefined {
  if (names.length === 0)
    return new RepriseError(
      "BAD_OPTIONS",
      `Workflow ${body.name}: ctx.receive expects at least one signal name, got none.`,
    );
  for (const name of names)
    if (typeof name !== "string" || !Object.hasOwn(body.ports, name) || body.ports[name]?.port !== "signal")
      return new RepriseError(
        "UNKNOWN_PORT",
        `Workflow ${body.name} receives signal \`${String(name)}\`, which it does not declare. Add ports: { ${String(name)}: signal() }.`,
      );
  return undefined;
}

/** The matrix compares the joined names; this also distinguishes names that contain the separator. */
function compare(names: readonly string[], timeoutMs: number | undefined): StrictCheck {
  return ({ type, data }) => {
    if (type !== "PromiseCreated") return undefined;
    const [expected, actual] = [encode(names), encode(data.receives)];
    if (expected !== actual) return { what: "list of signals", expected, actual };
    if (timeoutMs !== data.timeout) return { what: "timeout", expected: timeoutMs, actual: data.timeout };
    return undefined;
  };
}
