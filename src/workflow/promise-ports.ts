// Promise ports: values that a caller outside the run provides once per name and key. A value that arrives before the code waits
// is kept. A port in this file is the id of a promise (promise-id.I1).

import { RepriseError } from "../base/index.ts";
import { promiseIdOf, type Delivery } from "../kernel/index.ts";
import { encodeInput, promiseCreatedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { compareFields } from "./validation-matrix.ts";
import { never, rejected, describeDefinition } from "./refusals.ts";
import { nodeOfCaller } from "./scope.ts";
import type { Wait } from "./waits.ts";

export type PortDelivery = Delivery<"PromiseResolved" | "PromiseRejected">;

/** The settled ports of one run. */
export class PromisePorts {
  #settled: Map<string, PortDelivery> | undefined;
  /** Settled ports that the code has not waited for. */
  #untaken: Set<string> | undefined;

  /** The waits of the code that are listed as open promises (open-promise.P1). */
  #listed: Set<string> | undefined;

  wait(command: string): void {
    (this.#listed ??= new Set()).add(command);
  }

  /** True: the wait was listed, and no longer is. */
  unlist(command: string): boolean {
    return this.#listed?.delete(command) === true;
  }

  /** In the order in which they settled. */
  all(): readonly PortDelivery[] {
    return [...(this.#settled?.values() ?? [])];
  }

  find(port: string): PortDelivery | undefined {
    return this.#settled?.get(port);
  }

  untaken(): readonly PortDelivery[] {
    return [...(this.#untaken ?? [])].flatMap((port) => this.find(port) ?? []);
  }

  /** The code waits for the port. */
  take(port: string): PortDelivery | undefined {
    this.#untaken?.delete(port);
    return this.find(port);
  }

  settle(execution: Execution, recorded: PortDelivery): void {
    const { waits, commands } = execution;
    const port = recorded.data.promiseId;
    // The entry names the wait that it settled; in the code that command must wait for the same port.
    const waiter = recorded.command === "" ? undefined : waits.get(recorded.command);
    if (waiter !== undefined && waiter.name !== port) {
      const mismatch = compareFields("ResolvePromise", recorded.command, { promiseId: waiter.name }, recorded);
      const seq = commands.findDelivery(recorded.type, recorded.command);
      if (mismatch !== undefined) return execution.violate({ ...mismatch, where: recorded.command, seq });
    }
    if (this.find(port) !== undefined) return;
    if (recorded.type === "PromiseRejected")
      execution.deliveries.noteFailure(recorded.data.error, recorded.command || port);
    (this.#settled ??= new Map()).set(port, recorded);
    const settle = (wait: Wait): void => {
      if (recorded.type === "PromiseRejected") wait.reject(recorded.data.error);
      else wait.resolve(portValue(recorded, wait.timed));
    };
    // Nodes that waited for it run again, and receive it in recorded order.
    if (execution.nodes !== undefined && recorded.command !== "" && execution.replaying) {
      const seq = commands.findDelivery(recorded.type, recorded.command) ?? 0;
      for (const command of commands.waitersOf(port, seq)) execution.deliveries.keepEarly(command, settle);
    }
    const waiting = waits.on(port);
    if (waiting.length === 0) (this.#untaken ??= new Set()).add(port);
    for (const { command } of waiting) {
      this.unlist(command);
      waits.settle(command, settle);
    }
  }
}

/** ctx.promise */
export function requestPromise(
  execution: Execution,
  name: string,
  key: string | undefined,
  timeoutMs: number | undefined,
  show: unknown,
): Promise<unknown> {
  const { refusal, body } = execution;
  if (refusal !== undefined) return rejected(refusal);
  if (body.ports[name]?.port !== "promise")
    return rejected(
      new RepriseError(
        "UNKNOWN_PORT",
        `${describeDefinition(body)} waits for promise \`${name}\`, which it does not declare. Add ports: { ${name}: promise() }.`,
      ),
    );
  const port = promiseIdOf(body.ports, name, key, `ctx.promise(${name})`);
  const shown = encodeInput(show, execution.limits);
  const command = execution.issueCommand("Promise", "CreatePromise", { promiseId: port }, ({ type, data }) => {
    if (type !== "PromiseCreated") return undefined;
    if (timeoutMs !== data.timeout) return { what: "timeout", expected: timeoutMs, actual: data.timeout };
    const actual = encodeInput(data.show);
    return shown === actual ? undefined : { what: "`show`", expected: shown, actual };
  });
  if (command === undefined) return never();
  const settled = execution.promisePorts.take(port);
  const node = execution.nodes === undefined ? undefined : nodeOfCaller();
  const isInTurn = execution.waits.hasEarly(command.id);
  if (settled !== undefined && node !== undefined && !isInTurn) node.time = Math.max(node.time, settled.at);
  const timed = timeoutMs !== undefined;
  if (!command.known) {
    const data = promiseCreatedData(command.index, port, timeoutMs, shown, execution.isShielded, key);
    const request = { kind: "promise", command: command.id, data, since: command.reopened?.at } as const;
    execution.requests.push(
      settled === undefined
        ? { ...request, timeoutMs, open: { promiseId: port, name, key } }
        : { ...request, timeoutMs: undefined },
    );
  }
  if (settled === undefined || isInTurn) {
    execution.promisePorts.wait(command.id);
    return execution.open("Promise", command.id, port, timed);
  }
  if (settled.type === "PromiseRejected") return rejected(settled.data.error as Error);
  return Promise.resolve(portValue(settled, timed));
}

/** Without a payload, a wait with a timeout resolves to `true`: `undefined` means that it timed out. */
function portValue({ data: { value } }: Delivery<"PromiseResolved">, timed: boolean): unknown {
  return value === undefined && timed ? true : value;
}
