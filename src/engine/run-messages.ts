// Messages to a run: checked against its definition, then written to its inbox.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError, type PayloadLimits } from "../base/index.ts";
import {
  alreadySettled,
  checkSettlement,
  isSameSettlement,
  parse,
  type Arrival,
  type Ports,
  type Schema,
} from "../kernel/index.ts";
import { entryData, describeDefinition, type WorkflowBody } from "../workflow/index.ts";
import { abortable, checkSignal } from "./abort.ts";
import type { SettleOptions, SignalOptions } from "./api.ts";
import type { RunHandleHost } from "./run-handle.ts";

/** The run of a handle, with its definition. */
export interface RunTarget {
  readonly host: RunHandleHost;
  readonly body: WorkflowBody;
  readonly id: string;
}

export async function resolvePort(
  target: RunTarget,
  name: string,
  given: unknown,
  options: SettleOptions = {},
): Promise<void> {
  const { body } = target;
  const { schema } = getPort(body, name, "promise");
  const { id, fields, beforeStart, signal } = checkSettle(target, name, options, `resolve ${name}`);
  await abortable(signal, async () => {
    const value = await parse(schema, given, `promise ${name} of ${body.name}`);
    const text = entryData.encodeNamed(`The value of promise ${name}`, value, target.host.limits);
    const data = entryData.promiseResolvedData(id, text, fields);
    await send(target, { type: "PromiseResolved", target: id, data }, { once: true, beforeStart });
  });
}

export async function rejectPort(
  target: RunTarget,
  name: string,
  error: Error,
  options: SettleOptions = {},
): Promise<void> {
  getPort(target.body, name, "promise");
  const { id, fields, beforeStart, signal } = checkSettle(target, name, options, `reject ${name}`);
  const data = entryData.promiseRejectedData(id, error, fields);
  const arrival = { type: "PromiseRejected", target: id, data } as const;
  await abortable(signal, () => send(target, arrival, { once: true, beforeStart }));
}

function checkSettle(
  { body }: RunTarget,
  name: string,
  options: SettleOptions,
  what: string,
): ReturnType<typeof checkSettlement> & ReturnType<typeof checkEarly> {
  const early = checkEarly(options, ["beforeStart", "by", "key", "reason", "signal"], what);
  return { ...checkSettlement(body.ports, name, options, what), ...early };
}

function checkEarly(
  options: Pick<SettleOptions, "beforeStart" | "signal">,
  known: readonly string[],
  what: string,
): { readonly beforeStart: boolean; readonly signal: AbortSignal | undefined } {
  checkOptionNames(options, known, what);
  const { beforeStart = false } = options;
  if (typeof beforeStart !== "boolean")
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected true or false as beforeStart, got ${inspect(beforeStart)}.`,
    );
  return { beforeStart, signal: checkSignal(options.signal, what) };
}

export async function signalRun(
  target: RunTarget,
  name: string,
  given: unknown,
  options: SignalOptions = {},
): Promise<void> {
  const known = ["beforeStart", "dedupId", "signal"];
  const { beforeStart, signal } = checkEarly(options, known, `signal ${String(name)}`);
  const { dedupId } = options;
  if (dedupId !== undefined) checkName(dedupId, "dedupId");
  await abortable(signal, async () =>
    send(target, await signalOf(target.body, name, given, target.host.limits), { dedupId, beforeStart }),
  );
}

/** A signal with its value checked and encoded. */
export async function signalOf(
  body: WorkflowBody,
  name: string,
  given: unknown,
  limits?: PayloadLimits,
): Promise<Arrival> {
  const { schema } = getPort(body, name, "signal");
  const value = await parse(schema, given, `signal ${name} of ${body.name}`);
  const data = entryData.signalReceivedData(name, entryData.encodeNamed(`The value of signal ${name}`, value, limits));
  return { type: "SignalReceived", target: name, data };
}

/** The signals of a start, in the order written. */
export async function signalsOf(
  body: WorkflowBody,
  signals: unknown = {},
  limits?: PayloadLimits,
): Promise<readonly Arrival[]> {
  if (typeof signals !== "object" || signals === null)
    throw new RepriseError("BAD_OPTIONS", `start: expected an object of signals by name, got ${String(signals)}.`);
  const arrivals: Arrival[] = [];
  for (const [name, value] of Object.entries(signals)) arrivals.push(await signalOf(body, name, value, limits));
  return arrivals;
}

/** Writes submitted together keep their order: they share a batch, or go in consecutive batches. */
export async function sendAll(target: RunTarget, arrivals: readonly Arrival[]): Promise<void> {
  await Promise.all(arrivals.map((arrival) => send(target, arrival)));
}

/** Throws UNKNOWN_PORT if the definition has no such port of this kind. */
export function getPort(
  body: WorkflowBody,
  name: string,
  kind: Ports[string]["port"],
): { readonly schema?: Schema<never, unknown> } {
  checkName(name, "port name");
  const { ports } = body;
  const port = Object.hasOwn(ports, name) ? ports[name] : undefined;
  if (port?.port === kind) return port as { readonly schema?: Schema<never, unknown> };
  const known = Object.entries(ports).map(([each, { port: its }]) => `${each} (${its})`);
  const method = port?.port === "promise" ? "resolve" : port?.port;
  const hint =
    port === undefined ? "" : ` \`${name}\` is ${port.port === "update" ? "an" : "a"} ${port.port}: use run.${method}.`;
  throw new RepriseError(
    "UNKNOWN_PORT",
    `${describeDefinition(body)} has no ${kind} ${name}; its ports are: ${known.join(", ") || "none"}.${hint}`,
    { details: { name, kind, ...(method !== undefined && { method }) } },
  );
}

export interface SendOptions {
  /** The port accepts only one message. */
  readonly once?: boolean;
  readonly dedupId?: string | undefined;
  readonly beforeStart?: boolean;
}

/** False when a message with the same `dedupId`, or the same settlement of the promise, was sent before. */
export async function send(
  { host, body, id }: RunTarget,
  arrival: Arrival,
  options: SendOptions = {},
): Promise<boolean> {
  host.checkOpen();
  const { worker } = host;
  const { once = false, dedupId } = options;
  const { name: definition, kind, version } = body;
  const outcome = await worker.submit({
    write: "message",
    to: id,
    arrival,
    once,
    definition,
    ...(dedupId !== undefined && { dedupId }),
    ...(options.beforeStart === true && {
      beforeStart: { definition, kind, version, runtime: host.runtime },
    }),
  });
  switch (outcome.status) {
    case "committed":
      worker.onArrival(outcome.run);
      return true;
    case "no_run":
      throw new RepriseError(
        "RUN_NOT_FOUND",
        `There is no run ${id}. Start it first, check the id and the store, or pass { beforeStart: true }.`,
      );
    case "other_definition":
      throw otherDefinition(id, outcome.definition, definition);
    case "ended":
      throw new RepriseError("RUN_ENDED", `Run ${id} has ended (${outcome.as}) and accepts no more messages.`);
    case "duplicate":
      if (dedupId !== undefined) return false;
      // The same decision again: the caller got no answer the first time, or two people decided alike.
      if (outcome.settled !== undefined && isSameSettlement(outcome.settled, arrival.data)) return false;
      throw alreadySettled(arrival.target, id, outcome.settled);
  }
}

export function otherDefinition(id: string, actual: string, expected: string): RepriseError {
  return new RepriseError(
    "UNKNOWN_DEFINITION",
    `Run ${id} is a run of ${actual}, not of ${expected}. Use engine.get("${actual}", id).`,
  );
}
