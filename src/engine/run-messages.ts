// Messages to a run: checked here against its definition, written to its inbox.

import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import { parse, type Arrival, type Ports, type Schema } from "../kernel/index.ts";
import { entryData, type WorkflowBody } from "../workflow/index.ts";
import type { SignalOptions } from "./api.ts";
import type { HandleHost } from "./run-handle.ts";

/** The run a handle stands for. */
export interface Target {
  readonly host: HandleHost;
  readonly body: WorkflowBody;
  readonly id: string;
}

export async function resolvePort(target: Target, name: string, given: unknown): Promise<void> {
  const { body } = target;
  const { schema } = getPort(body, name, "promise");
  const value = await parse(schema, given, `promise ${name} of ${body.name}`);
  const data = entryData.promiseResolvedData(name, entryData.encodeNamed(`The value of promise ${name}`, value));
  await send(target, { type: "PromiseResolved", target: name, data }, { once: true });
}

export async function rejectPort(target: Target, name: string, error: Error): Promise<void> {
  getPort(target.body, name, "promise");
  const data = entryData.promiseRejectedData(name, error);
  await send(target, { type: "PromiseRejected", target: name, data }, { once: true });
}

export async function signalRun(
  target: Target,
  name: string,
  given: unknown,
  options: SignalOptions = {},
): Promise<void> {
  const { body } = target;
  const { schema } = getPort(body, name, "signal");
  checkOptionNames(options, ["dedupId"], `signal ${name}`);
  const { dedupId } = options;
  if (dedupId !== undefined) checkName(dedupId, "dedupId");
  const value = await parse(schema, given, `signal ${name} of ${body.name}`);
  const data = entryData.signalReceivedData(name, entryData.encodeNamed(`The value of signal ${name}`, value));
  await send(target, { type: "SignalReceived", target: name, data }, { ...(dedupId !== undefined && { dedupId }) });
}

/** The declared port, refused when there is none of that kind. */
export function getPort(
  { name: workflow, ports }: WorkflowBody,
  name: string,
  kind: Ports[string]["port"],
): { readonly schema?: Schema<never, unknown> } {
  checkName(name, "port name");
  const port = Object.hasOwn(ports, name) ? ports[name] : undefined;
  if (port?.port === kind) return port as { readonly schema?: Schema<never, unknown> };
  const known = Object.keys(ports).join(", ") || "none";
  throw new RepriseError("UNKNOWN_PORT", `Workflow ${workflow} has no ${kind} ${name}; its ports are: ${known}.`);
}

export interface SendOptions {
  /** The target takes one message. */
  readonly once?: boolean;
  readonly dedupId?: string;
  readonly endedIsFine?: boolean;
}

export async function send({ host, id }: Target, arrival: Arrival, options: SendOptions = {}): Promise<void> {
  host.checkOpen();
  const { worker } = host;
  const { once = false, dedupId, endedIsFine = false } = options;
  const outcome = await worker.pump.submit({
    write: "message",
    to: id,
    arrival,
    once,
    ...(dedupId !== undefined && { dedupId }),
  });
  switch (outcome.status) {
    case "committed":
      return worker.runs.arrived(outcome.run);
    case "no-run":
      throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Start it first, or check the id and the store.`);
    case "ended":
      if (endedIsFine) return;
      throw new RepriseError("RUN_ENDED", `Run ${id} has ended (${outcome.as}) and takes no more messages.`);
    case "duplicate":
      if (dedupId !== undefined) return;
      throw new RepriseError(
        "PROMISE_ALREADY_RESOLVED",
        `The promise ${arrival.target} of run ${id} already has its value; the first one is kept.`,
      );
  }
}
