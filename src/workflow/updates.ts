// Updates: requests from outside that the code handles and answers.
//
// updates.A1. A request is handled once, at its position in the journal. Without a handler for its name it waits, in order.
// updates.A2. The answer is an entry. On replay it is matched by the id of the request, and strict mode compares it.
// updates.A3. A request that is being handled when the code continues as new fails: if the next generation handled it again, the
//   effects of its handler would happen twice.
// updates.A4. A handler is workflow code and may request steps. It is never called inside another call of ctx.

import { decode, RepriseError } from "../base/index.ts";
import type { Delivery, EntryData, UpdateRequestedData } from "../kernel/index.ts";
import { encodeNamed, errorText, updateCompletedData, updateFailedData } from "./entry-data.ts";
import { nondeterministic } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { findNondeterminism } from "./guard.ts";
import { callWorkflow, refuseInsideStep } from "./scope.ts";

/** The data of an answer; both fields where its type is not known. */
type AnswerData = EntryData["UpdateCompleted"] & Partial<EntryData["UpdateFailed"]>;

export type UpdateHandler = (args: unknown) => unknown;

interface UpdateRequest {
  /** `Update(<id>)` */
  readonly command: string;
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
  /** As delivered. */
  readonly data: UpdateRequestedData;
}

export class Updates {
  readonly #handlers = new Map<string, UpdateHandler>();
  readonly #known = new Set<string>();
  #waiting: UpdateRequest[] = [];
  /** Requests that are being handled. */
  readonly #begun = new Map<string, UpdateRequest>();

  /** The code can receive an update although it awaits nothing. */
  get isReady(): boolean {
    return this.#handlers.size > 0;
  }

  /** False when the journal already has the request: the sender repeated it. */
  announce(command: string): boolean {
    if (this.#known.has(command)) return false;
    this.#known.add(command);
    return true;
  }

  /** Requests that no handler has started on. */
  unhandled(): readonly UpdateRequestedData[] {
    return this.#waiting.map(({ data }) => data);
  }

  /** False when the request already has its answer. */
  answered(command: string): boolean {
    return this.#begun.delete(command);
  }

  /** updates.A3 */
  abortRunning(execution: Execution): void {
    for (const request of this.#begun.values()) fail(execution, request, abortedByContinue(execution, request));
  }

  /** updates.A1 */
  deliver(execution: Execution, { command, data }: Delivery<"UpdateRequested">): void {
    this.#known.add(command);
    const { id, name, args } = data;
    const request = { command, id, name, args, data };
    if (this.#handlers.has(request.name)) this.#begin(execution, request);
    else this.#waiting.push(request);
  }

  #begin(execution: Execution, request: UpdateRequest): void {
    const handler = this.#handlers.get(request.name);
    if (handler === undefined || execution.stop !== undefined) return;
    this.#begun.set(request.command, request);
    handle(execution, request, handler);
  }

  register(execution: Execution, name: string, handler: UpdateHandler): void {
    this.#handlers.set(name, handler);
    if (!this.#waiting.some((request) => request.name === name)) return;
    // updates.A4. One microtask later, because the handler may use variables that the code declares after this call.
    void Promise.resolve().then(() => {
      // The code has continued as new meanwhile: the next generation gets the requests (generation.N3).
      if (execution.outcome !== undefined || execution.isUndoing) return;
      const waiting = this.#waiting.filter((request) => request.name === name);
      this.#waiting = this.#waiting.filter((request) => request.name !== name);
      for (const request of waiting) this.#begin(execution, request);
    });
  }
}

function handle(execution: Execution, request: UpdateRequest, handler: UpdateHandler): void {
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

function complete(execution: Execution, request: UpdateRequest, value: unknown): void {
  let result: string | undefined;
  try {
    result = encodeNamed(`The answer to update ${request.name}`, value, execution.limits);
  } catch (notData) {
    return fail(execution, request, notData);
  }
  answered(execution, request, "UpdateCompleted", updateCompletedData(request.id, result), (data) => [
    result,
    encodeNamed("recorded", data.result),
  ]);
}

function fail(execution: Execution, request: UpdateRequest, error: unknown): void {
  const caught = findNondeterminism(error);
  if (caught !== undefined) return void execution.halt(nondeterministic(caught));
  const data = updateFailedData(request.id, error);
  // Without the stack, which differs between machines.
  answered(execution, request, "UpdateFailed", data, (recorded) => [errorText(error), errorText(recorded.error)]);
}

function abortedByContinue({ identity }: Execution, { name }: UpdateRequest): RepriseError {
  return new RepriseError(
    "RUN_ENDED",
    `Run ${identity.id} continued as new while it handled update \`${name}\`. The handler may have done a part of its work. Check its effects before you repeat the update.`,
  );
}

/** updates.A2 */
function answered(
  execution: Execution,
  { command }: UpdateRequest,
  type: "UpdateCompleted" | "UpdateFailed",
  data: string,
  compare: (recorded: AnswerData) => readonly [now: string | undefined, then: string | undefined],
): void {
  if (execution.stop !== undefined || !execution.updates.answered(command)) return;
  const recorded = execution.commands.takeRecordedAnswer(command);
  if (recorded === undefined) {
    execution.requests.push({ kind: "answer", type, command, data });
    return;
  }
  if (!execution.commands.strict) return;
  const [expected, actual] = recorded.type === type ? compare(recorded.data as AnswerData) : [type, recorded.type];
  if (expected === actual) return;
  execution.violate({
    message: `the journal recorded another answer to this update than the code now gives (at ${command})`,
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

/** Checks the arguments of ctx.onQuery and ctx.onUpdate. */
export function checkHandler({ body }: Execution, kind: "query" | "update", name: string, handler: unknown): void {
  if (typeof name !== "string" || !Object.hasOwn(body.ports, name) || body.ports[name]?.port !== kind)
    throw new RepriseError(
      "UNKNOWN_PORT",
      `Workflow ${body.name} answers ${kind} \`${String(name)}\`, which it does not declare. Add ports: { ${String(name)}: ${kind}() }.`,
    );
  if (typeof handler !== "function")
    throw new RepriseError(
      "BAD_OPTIONS",
      `Workflow ${body.name}: expected a function for ${kind} \`${name}\`, got ${typeof handler}.`,
    );
}
