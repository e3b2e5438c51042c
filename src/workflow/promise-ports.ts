// Promise ports: values somebody outside the run provides once. Kept when they come before the code waits.

import { RepriseError } from "../base/index.ts";
import { encodeInput, promiseCreatedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { compareFields } from "./matrix.ts";
import type { RecordedEntry } from "./recorded.ts";
import { never, refused, titleOf } from "./refusals.ts";
import { nodeOfCaller } from "./scope.ts";
import type { Wait } from "./waits.ts";

/** The ports of one run that have their value. */
export class PromisePorts {
  #settled: Map<string, RecordedEntry> | undefined;
  /** Those of them that the code never waited for. */
  #untaken: Set<string> | undefined;

  /** Everything that came, in order. */
  all(): readonly RecordedEntry[] {
    return [...(this.#settled?.values() ?? [])];
  }

  find(port: string): RecordedEntry | undefined {
    return this.#settled?.get(port);
  }

  untaken(): readonly RecordedEntry[] {
    return [...(this.#untaken ?? [])].flatMap((port) => this.find(port) ?? []);
  }

  /** The code waits for it. */
  take(port: string): RecordedEntry | undefined {
    this.#untaken?.delete(port);
    return this.find(port);
  }

  settle(execution: Execution, recorded: RecordedEntry): void {
    const { waits, commands } = execution;
    const port = String(recorded.data["promiseId"]);
    // The journal says who waited when it was written; the code that waits now must be the same.
    const waiter = recorded.command === "" ? undefined : waits.get(recorded.command);
    if (waiter !== undefined && waiter.name !== port) {
      const mismatch = compareFields("ResolvePromise", recorded.command, { promiseId: waiter.name }, recorded);
      const seq = commands.findDelivery(recorded.type, recorded.command);
      if (mismatch !== undefined) return execution.violate({ ...mismatch, where: recorded.command, seq });
    }
    if (this.find(port) !== undefined) return;
    if (recorded.type === "PromiseRejected") execution.noteFailure(recorded.data["error"], recorded.command || port);
    (this.#settled ??= new Map()).set(port, recorded);
    const settle = (wait: Wait): void => {
      if (recorded.type === "PromiseRejected") wait.reject(recorded.data["error"]);
      else wait.resolve(portValue(recorded, wait.timed));
    };
    // The nodes that waited for it are run again, and get it in their turn.
    if (execution.nodes !== undefined && recorded.command !== "" && execution.replaying) {
      const seq = commands.findDelivery(recorded.type, recorded.command) ?? 0;
      for (const command of commands.waitersOf(port, seq)) execution.keepEarly(command, settle);
    }
    const waiting = waits.on(port);
    if (waiting.length === 0) (this.#untaken ??= new Set()).add(port);
    for (const wait of waiting) waits.settle(wait.command, settle);
  }
}

/** ctx.promise */
export function askPromise(
  execution: Execution,
  port: string,
  timeoutMs: number | undefined,
  show: unknown,
): Promise<unknown> {
  const { refusal, body } = execution;
  if (refusal !== undefined) return refused(refusal);
  if (body.ports[port]?.port !== "promise")
    return refused(
      new RepriseError(
        "UNKNOWN_PORT",
        `${titleOf(body)} waits for the promise ${port}, which is not among its ports. Declare it: ports: { ${port}: promise() }.`,
      ),
    );
  const shown = encodeInput(show, execution.limits);
  const command = execution.command("Promise", "CreatePromise", { promiseId: port }, ({ data }) => {
    if (timeoutMs !== data["timeout"]) return { what: "Timeout", expected: timeoutMs, actual: data["timeout"] };
    const then = encodeInput(data["show"]);
    return shown === then ? undefined : { what: "What is shown", expected: shown, actual: then };
  });
  if (command === undefined) return never();
  const settled = execution.promisePorts.take(port);
  const node = execution.nodes === undefined ? undefined : nodeOfCaller();
  const isInTurn = execution.waits.hasEarly(command.id);
  if (settled !== undefined && node !== undefined && !isInTurn) node.time = Math.max(node.time, settled.at);
  const timed = timeoutMs !== undefined;
  if (!command.known) {
    const data = promiseCreatedData(command.index, port, timeoutMs, shown, execution.isShielded);
    const left = settled === undefined ? timeoutMs : undefined;
    execution.asks.push({ ask: "promise", command: command.id, data, timeoutMs: left });
  }
  if (settled === undefined || isInTurn) return execution.open("Promise", command.id, port, timed);
  if (settled.type === "PromiseRejected") return refused(settled.data["error"] as Error);
  return Promise.resolve(portValue(settled, timed));
}

/** A port without payload answers `true` to a wait that could have run out, so that the two can be told apart. */
function portValue(recorded: RecordedEntry, timed: boolean): unknown {
  const value = recorded.data["value"];
  return value === undefined && timed ? true : value;
}
