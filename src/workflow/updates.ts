// Updates: messages the code handles and answers.
//
// A1. A request is handled at its place in the journal, once; while nobody handles its name it waits, in order.
// A2. The answer is an entry like the end of an operation: matched by the request's id on replay, in strict mode compared.
// A3. A handler is workflow code: it may ask for what workflow code may. It is never called inside another call of ctx.

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
}

export class Updates {
  readonly #handlers = new Map<string, UpdateHandler>();
  readonly #known = new Set<string>();
  #waiting: Request[] = [];
  /** Delivered and not answered, in the order they came. */
  readonly #open = new Map<string, Readonly<Record<string, unknown>>>();

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

  /** Requests without an answer, as they came. */
  unanswered(): readonly Readonly<Record<string, unknown>>[] {
    return [...this.#open.values()];
  }

  answered(command: string): void {
    this.#open.delete(command);
  }

  /** A1 */
  deliver(execution: Execution, command: string, data: Readonly<Record<string, unknown>>): void {
    this.#known.add(command);
    this.#open.set(command, data);
    const request = { command, id: String(data["id"]), name: String(data["name"]), args: data["args"] };
    const handler = this.#handlers.get(request.name);
    if (handler === undefined) this.#waiting.push(request);
    else handle(execution, request, handler);
  }

  register(execution: Execution, name: string, handler: UpdateHandler): void {
    this.#handlers.set(name, handler);
    const waiting = this.#waiting.filter((request) => request.name === name);
    if (waiting.length === 0) return;
    this.#waiting = this.#waiting.filter((request) => request.name !== name);
    // A3. What the code does in the same breath comes first: the handler may use what is declared below.
    void Promise.resolve().then(() => {
      for (const request of waiting) handle(execution, request, handler);
    });
  }
}

function handle(execution: Execution, request: Request, handler: UpdateHandler): void {
  if (execution.stop !== undefined) return;
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

/** A2 */
function answered(
  execution: Execution,
  { command }: Request,
  type: "UpdateCompleted" | "UpdateFailed",
  data: string,
  compare: (recorded: RecordedEntry["data"]) => readonly [now: string | undefined, then: string | undefined],
): void {
  if (execution.stop !== undefined) return;
  execution.updates.answered(command);
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
