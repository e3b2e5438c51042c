// Updates: messages the code handles and answers.
//
// A1. A request is handled at its place in the journal, once; while nobody handles its name it waits, in order.
// A2. The answer is an entry like the end of an operation: matched by the request's id on replay, in strict mode compared.
// A3. What is being handled when the code continues as new is answered with a failure: handled again by the next generation,
//     what its handler has done would be done twice.
// A4. A handler is workflow code: it may ask for what workflow code may. It is never called inside another call of ctx.

import { decode, RepriseError } from "../base/index.ts";
import { encodeNamed, errorText, updateCompletedData, updateFailedData } from "./entry-data.ts";
import { nondeterministic } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { findNondeterminism } from "./guard.ts";
import type { RecordedEntry } from "./recorded.ts";
import { callWorkflow, refuseInsideStep } from "./scope.ts";

export type UpdateHandler = (args: unknown) => unknown;

interface Request {
  /** `Update(<id>)` */
  readonly command: string;
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  /** As it came. */
  readonly data: Readonly<Record<string, unknown>>;
}

export class Updates {
  readonly #handlers = new Map<string, UpdateHandler>();
  readonly #known = new Set<string>();
  #waiting: Request[] = [];
  /** Being handled. */
  readonly #begun = new Map<string, Request>();

  /** Something may come that the code is ready for, though it waits for nothing. */
  get isReady(): boolean {
    return this.#handlers.size > 0;
  }

  /** False when the request is in the journal already: its sender asks again. */
  announce(command: string): boolean {
    if (this.#known.has(command)) return false;
    this.#known.add(command);
    return true;
  }

  /** Requests nobody has begun to handle, as they came. */
  unhandled(): readonly Readonly<Record<string, unknown>>[] {
    return this.#waiting.map(({ data }) => data);
  }

  /** False when it has its answer. */
  answered(command: string): boolean {
    return this.#begun.delete(command);
  }

  /** A3 */
  breakOff(execution: Execution): void {
    for (const request of this.#begun.values()) fail(execution, request, brokenOff(execution, request));
  }

  /** A1 */
  deliver(execution: Execution, command: string, data: Readonly<Record<string, unknown>>): void {
    this.#known.add(command);
    const request = { command, id: String(data["id"]), name: String(data["name"]), args: data["args"], data };
    if (this.#handlers.has(request.name)) this.#begin(execution, request);
    else this.#waiting.push(request);
  }

  #begin(execution: Execution, request: Request): void {
    const handler = this.#handlers.get(request.name);
    if (handler === undefined || execution.stop !== undefined) return;
    this.#begun.set(request.command, request);
    handle(execution, request, handler);
  }

  register(execution: Execution, name: string, handler: UpdateHandler): void {
    this.#handlers.set(name, handler);
    if (!this.#waiting.some((request) => request.name === name)) return;
    // A4. What the code does in the same breath comes first: the handler may use what is declared below.
    void Promise.resolve().then(() => {
      // N3. The code has continued as new in that breath: they go over.
      if (execution.outcome !== undefined || execution.isUndoing) return;
      const waiting = this.#waiting.filter((request) => request.name === name);
      this.#waiting = this.#waiting.filter((request) => request.name !== name);
      for (const request of waiting) this.#begin(execution, request);
    });
  }
}

function handle(execution: Execution, request: Request, handler: UpdateHandler): void {
  let answer: Promise<unknown>;
  try {
    answer = callWorkflow(execution.host.guard, () => Promise.resolve(handler(request.args)));
  } catch (error) {
    answer = Promise.reject(error);
  }
  answer.then(
    (value) => complete(execution, request, value),
    (error: unknown) => fail(execution, request, error),
  );
}

function complete(execution: Execution, request: Request, value: unknown): void {
  let result: string | undefined;
  try {
    result = encodeNamed(`The answer to update ${request.name}`, value, execution.limits);
  } catch (notData) {
    return fail(execution, request, notData);
  }
  answered(execution, request, "UpdateCompleted", updateCompletedData(request.id, result), (data) => [
    result,
    encodeNamed("recorded", data["result"]),
  ]);
}

function fail(execution: Execution, request: Request, error: unknown): void {
  const caught = findNondeterminism(error);
  if (caught !== undefined) return void execution.halt(nondeterministic(caught));
  const data = updateFailedData(request.id, error);
  // Without the stack, which differs between machines.
  answered(execution, request, "UpdateFailed", data, (recorded) => [errorText(error), errorText(recorded["error"])]);
}

function brokenOff({ facts }: Execution, { name }: Request): RepriseError {
  return new RepriseError(
    "RUN_ENDED",
    `Run ${facts.id} continued as new while the update ${name} was being handled. What its handler has done stands, the rest was not done: look before you ask again.`,
  );
}

/** A2 */
function answered(
  execution: Execution,
  { command }: Request,
  type: "UpdateCompleted" | "UpdateFailed",
  data: string,
  compare: (recorded: RecordedEntry["data"]) => readonly [now: string | undefined, then: string | undefined],
): void {
  if (execution.stop !== undefined || !execution.updates.answered(command)) return;
  const recorded = execution.commands.takeAnswer(command);
  if (recorded === undefined) {
    execution.asks.push({ ask: "answer", type, command, data });
    return;
  }
  if (!execution.commands.strict) return;
  const [expected, actual] = recorded.type === type ? compare(recorded.data) : [type, recorded.type];
  if (expected === actual) return;
  execution.violate({
    message: `Answer mismatch at ${command}`,
    expected: recorded.type === type && expected !== undefined ? decode(expected) : expected,
    actual: recorded.type === type && actual !== undefined ? decode(actual) : actual,
    where: command,
    seq: recorded.seq,
  });
}

/** ctx.onUpdate */
export function onUpdate(execution: Execution, name: string, handler: UpdateHandler): void {
  refuseInsideStep();
  checkHandler(execution, "update", name, handler);
  execution.updates.register(execution, name, handler);
}

/** ctx.onQuery and ctx.onUpdate take a declared name and a function. */
export function checkHandler({ body }: Execution, kind: "query" | "update", name: string, handler: unknown): void {
  if (typeof name !== "string" || !Object.hasOwn(body.ports, name) || body.ports[name]?.port !== kind)
    throw new RepriseError(
      "UNKNOWN_PORT",
      `Workflow ${body.name} answers the ${kind} ${String(name)}, which is not among its ports. Declare it: ports: { ${String(name)}: ${kind}() }.`,
    );
  if (typeof handler !== "function")
    throw new RepriseError("BAD_OPTIONS", `Workflow ${body.name}: expected a function for the ${kind} ${name}.`);
}
