// ctx.resolve and ctx.reject: settle a promise of another run. The commit that records the request also delivers it, and the store
// answers in the inbox of this run: accepted, or why not. So each is delivered once, and the code learns what became of it.

import { checkName, checkOptionNames, checkRunId, digest, encode, RepriseError } from "../base/index.ts";
import {
  alreadySettled,
  checkSettlement,
  parseNow,
  type Arrival,
  type Definition,
  type Delivery,
  type Schema,
  type SettlementFields,
} from "../kernel/index.ts";
import type { StrictCheck } from "./command-matcher.ts";
import type { PromiseSettleOptions } from "./context.ts";
import {
  encodeInput,
  encodeNamed,
  errorText,
  flag,
  indexText,
  promiseRejectedData,
  promiseResolvedData,
  record,
} from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { describeDefinition, never, rejected } from "./refusals.ts";

/** The promise of another run that the code names. */
interface SettledPromise {
  readonly definition: Definition;
  readonly runId: string;
  readonly name: string;
  readonly options: PromiseSettleOptions;
}

/** What the code settles it with. */
type Outcome = { readonly value: unknown } | { readonly error: unknown };

export function requestSettle(execution: Execution, promise: SettledPromise, outcome: Outcome): Promise<void> {
  const { definition, runId, name } = promise;
  const what = `ctx.${"error" in outcome ? "reject" : "resolve"}(${name})`;
  if (typeof definition?.name !== "string")
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `${what}: expected the definition of the other run, made by workflow() or graph(), as the first argument.`,
    );
  checkRunId(runId);
  checkName(name, `${what}: port name`);
  checkOptionNames(promise.options, ["by", "key", "reason"], what);
  const { refusal } = execution;
  if (refusal !== undefined) return rejected(refusal);
  const ports = execution.host.portsOf(definition);
  const port = ports !== undefined && Object.hasOwn(ports, name) ? ports[name] : undefined;
  if (ports !== undefined && port?.port !== "promise")
    throw new RepriseError(
      "UNKNOWN_PORT",
      `${describeDefinition(definition)} has no promise \`${name}\`. Its ports are: ${Object.keys(ports).join(", ") || "none"}.`,
    );
  // Checked before the command gets its index: an index without an entry is a gap.
  const { id, fields } = checkSettlement(ports ?? {}, name, promise.options, what);
  const schema = "error" in outcome ? undefined : (port as { readonly schema?: Schema<never, unknown> })?.schema;
  const given = "error" in outcome ? undefined : outcome.value;
  const value = parseNow(schema, given, `promise ${name} of ${definition.name}`);
  const error = "error" in outcome ? errorText(outcome.error) : undefined;
  const text = encodeNamed(`The value of promise ${name}`, value, execution.limits);
  const compare = compareOutcome(given, error);
  const command = execution.issueCommand("Settle", "SettlePromise", { runId, promiseId: id }, compare);
  if (command === undefined) return never();
  if (!command.known) {
    if (ports === undefined)
      return execution.halt(unregistered("UNKNOWN_DEFINITION", execution.body, definition.name, command.id));
    const arrival: Arrival =
      "error" in outcome
        ? { type: "PromiseRejected", target: id, data: promiseRejectedData(id, outcome.error, fields) }
        : { type: "PromiseResolved", target: id, data: promiseResolvedData(id, text, fields) };
    const data = settleRequestedData({
      index: command.index,
      runId,
      definition: definition.name,
      promiseId: id,
      ...fields,
      value: text,
      error,
      given: schema === undefined ? undefined : digest(encode(given)),
      shielded: execution.isShielded,
    });
    const settlement = { command: command.id, to: runId, definition: definition.name, arrival };
    execution.requests.push({ kind: "settle", command: command.id, data, settlement });
  }
  return execution.open("Settle", command.id, id, false) as Promise<void>;
}

interface RequestFields extends SettlementFields {
  readonly index: number;
  readonly runId: string;
  readonly definition: string;
  readonly promiseId: string;
  readonly value: string | undefined;
  readonly error: string | undefined;
  /** Digest of the value that the code passed, if a schema parsed it. */
  readonly given: string | undefined;
  readonly shielded: boolean;
}

function settleRequestedData(fields: RequestFields): string {
  const { by, key, reason } = fields;
  return record({
    by: by === undefined ? undefined : encode(by),
    definition: encode(fields.definition),
    error: fields.error,
    given: fields.given === undefined ? undefined : encode(fields.given),
    index: indexText(fields.index),
    key: key === undefined ? undefined : encode(key),
    promiseId: encode(fields.promiseId),
    reason: reason === undefined ? undefined : encode(reason),
    runId: encode(fields.runId),
    shielded: flag(fields.shielded),
    value: fields.value,
  });
}

/** Strict mode: compares the value or the error that the code passes with the recorded one. */
function compareOutcome(given: unknown, error: string | undefined): StrictCheck {
  return ({ type, data }) => {
    if (type !== "SettleRequested") return undefined;
    const what = "value of a promise";
    if (data.given !== undefined) {
      const expected = error ?? digest(encode(given));
      return data.given === expected ? undefined : { what, expected, actual: data.given };
    }
    const expected = error ?? encodeInput(given);
    const actual = "error" in data ? errorText(data.error) : encodeInput(data.value);
    return expected === actual ? undefined : { what, expected, actual };
  };
}

/** The store has answered: the call returns, or throws why the promise was not settled. */
export function deliverAnswer(execution: Execution, { command, data }: Delivery<"SettleAnswered">): void {
  const error = refusalOf(data);
  if (error === undefined) execution.deliveries.settle(command, undefined);
  else execution.deliveries.fail(command, execution.deliveries.noteFailure(error, command));
}

function refusalOf(answer: Delivery<"SettleAnswered">["data"]): RepriseError | undefined {
  const { runId, promiseId } = answer;
  const what = `Promise ${promiseId} of run ${runId} was not settled`;
  switch (answer.status) {
    case "accepted":
    case "repeated":
      return undefined;
    case "no_run":
      return new RepriseError("RUN_NOT_FOUND", `${what}: there is no such run. Start it first, or check the id.`);
    case "ended":
      return new RepriseError("RUN_ENDED", `${what}: the run has ended (${String(answer.as)}).`);
    case "other_definition":
      return new RepriseError(
        "UNKNOWN_DEFINITION",
        `${what}: it is a run of ${String(answer.definition)}. Pass that definition to ctx.resolve or ctx.reject.`,
      );
    case "already_settled":
      return alreadySettled(promiseId, runId, answer.settled === undefined ? undefined : encode(answer.settled));
  }
}
