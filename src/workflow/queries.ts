// Queries: what the code answers from its memory, at once, changing nothing.

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

/** Asks the code as it stands. What goes in and comes out are copies: nobody gets hold of what the code keeps. */
export function answerQuery(execution: Execution, name: string, args: string | undefined): unknown {
  const handler = execution.queries?.get(name);
  const { facts, body } = execution;
  if (handler === undefined)
    throw new RepriseError(
      "NO_QUERY_HANDLER",
      `Run ${facts.id} has no answer to the query ${name} where it stands. Call ctx.onQuery("${name}", …) at the beginning of workflow ${body.name}.`,
    );
  const answer = callQuery(name, () => handler(args === undefined ? undefined : decode(args)));
  if (isThenable(answer)) {
    Promise.resolve(answer).catch(ignore);
    throw new RepriseError(
      "USAGE",
      `The query ${name} of workflow ${body.name} answered with a promise. A query answers at once, from what the code has: use an update where something must be done.`,
    );
  }
  const text = encodeNamed(`The answer to query ${name}`, answer, execution.limits);
  return text === undefined ? undefined : decode(text);
}
