// ctx.continueAsNew: ends this generation of the run and starts the next one with a new journal (rules.W9).
//
// It is not a command: it never settles. Requests before it are recorded in the old journal and end with it.

import { digest, encode } from "../base/index.ts";
import { encodeNamed } from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { never, rejected } from "./refusals.ts";
import { NO_MODELS } from "./run-models.ts";
import { refuseInsideStep } from "./scope.ts";

export function requestContinue(execution: Execution, given: unknown, version: number | undefined): Promise<never> {
  refuseInsideStep();
  const { refusal, host, body } = execution;
  if (refusal !== undefined) return rejected(refusal);
  if (execution.stop !== undefined || execution.isUndoing) return never();
  const next = version ?? body.version;
  const accepted = host.acceptNext(body.name, next, given);
  if (accepted === undefined)
    return execution.halt(unregistered("UNKNOWN_DEFINITION", body, `${body.name} version ${next}`, "continueAsNew"));
  const input = encodeNamed(`The input of workflow ${body.name}`, accepted.input, execution.limits);
  execution.conclude({
    status: "continued",
    version: next,
    input,
    given: given === undefined ? undefined : digest(encode(given)),
    ...(execution.draws.models !== NO_MODELS && { models: execution.draws.models }),
  });
  return never();
}
