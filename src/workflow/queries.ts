// Queries: answers from the memory of the code, synchronously and without side effects.

import { decode, isThenable, RepriseError } from "../base/index.ts";
import type { Execution } from "./execution.ts";
import { encodeNamed } from "./entry-data.ts";
import { ignore } from "./refusals.ts";
import { callQuery, refuseInsideStep } from "./scope.ts";
import { checkHandler } from "./updates.ts";

export type QueryHandler = (args: unknown) => unknown;

/** ctx.onQuery */
export function onQuery(execution: Execution, name: string, answer: QueryHandler): void {
  refuseInsideStep();
  checkHandler(execution, "query", name, answer);
  (execution.queries ??= new Map()).set(name, answer);
}

/** Calls the handler of a query. Arguments and answer are copied, so the caller cannot change the values of the code. */
export function answerQuery(execution: Execution, name: string, args: string | undefined): unknown {
  const handler = execution.queries?.get(name);
  const { identity, body } = execution;
  if (handler === undefined)
    throw new RepriseError(
      "NO_QUERY_HANDLER",
      `Run ${identity.id} has registered no handler for query \`${name}\` so far. Call ctx.onQuery("${name}", …) before the first wait of workflow ${body.name}.`,
    );
  const answer = callQuery(name, () => handler(args === undefined ? undefined : decode(args)));
  if (isThenable(answer)) {
    Promise.resolve(answer).catch(ignore);
    throw new RepriseError(
      "USAGE",
      `The handler of query \`${name}\` of workflow ${body.name} returned a promise. A query answers synchronously. Use an update for asynchronous work.`,
    );
  }
  const text = encodeNamed(`The answer to query ${name}`, answer, execution.limits);
  return text === undefined ? undefined : decode(text);
}
