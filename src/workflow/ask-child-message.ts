// Messages to a child: journaled like every command, and sent in the same commit, so each goes out once.

import { checkName, digest, encode, RepriseError } from "../base/index.ts";
import { parseNow, type Arrival, type Schema } from "../kernel/index.ts";
import type { ChildMessageAsk } from "./ask.ts";
import type { AskedChild } from "./ask-child.ts";
import { isViolation, type StrictCheck } from "./commands.ts";
import { isWorkflow, workflowBody } from "./definition.ts";
import {
  cancelRequestedData,
  childCancelRequestedData,
  childSignalledData,
  encodeInput,
  encodeNamed,
  signalReceivedData,
} from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { never, refused, titleOf } from "./refusals.ts";
import { refuseInsideStep } from "./scope.ts";

/** child.signal */
export function signalChild(execution: Execution, child: AskedChild, name: string, given: unknown): Promise<void> {
  const { definition } = child;
  checkName(name, "port name");
  const ports = isWorkflow(definition) ? workflowBody(definition).ports : {};
  const port = Object.hasOwn(ports, name) ? ports[name] : undefined;
  if (port?.port !== "signal")
    throw new RepriseError(
      "UNKNOWN_PORT",
      `${titleOf(definition)} has no signal ${name}; its ports are: ${Object.keys(ports).join(", ") || "none"}.`,
    );
  const { schema } = port as { readonly schema?: unknown } as { readonly schema?: Schema<never, unknown> };
  const value = parseNow(schema, given, `signal ${name} of ${definition.name}`);
  const text = encodeNamed(`The value of signal ${name}`, value, execution.limits);
  const digestOfGiven = schema === undefined ? undefined : digest(encode(given));
  const arrival: Arrival = { type: "SignalReceived", target: name, data: signalReceivedData(name, text) };
  return send(execution, child, "ChildSignalled", { name }, arrival, compareValue(given), (index) =>
    childSignalledData({ index, childExecutionId: child.id, name, value: text, given: digestOfGiven }),
  );
}

/** child.cancel */
export function cancelChild(execution: Execution, child: AskedChild): Promise<void> {
  const arrival: Arrival = { type: "CancelRequested", target: "", data: cancelRequestedData(undefined) };
  return send(execution, child, "ChildCancelRequested", {}, arrival, undefined, (index) =>
    childCancelRequestedData(index, child.id),
  );
}

function send(
  execution: Execution,
  child: AskedChild,
  type: ChildMessageAsk["type"],
  fields: Readonly<Record<string, unknown>>,
  arrival: Arrival,
  compare: StrictCheck | undefined,
  dataOf: (index: number) => string,
): Promise<void> {
  refuseInsideStep();
  const { refusal } = execution;
  if (refusal !== undefined) return refused(refusal);
  if (child.isDetached)
    throw new RepriseError(
      "USAGE",
      `Child ${child.id} is detached: it is nobody's child any more. Speak to it from outside, with engine.run.`,
    );
  if (child.command === undefined || execution.stop !== undefined || execution.isUndoing) return never();
  const command = execution.commands.nextMessage(child.command, child.sent, type, fields, compare);
  child.sent += 1;
  if (isViolation(command)) {
    execution.violate(command);
    return never();
  }
  if (!command.known)
    execution.asks.push({
      ask: "child-message",
      type,
      command: command.id,
      data: dataOf(command.index),
      childId: child.id,
      arrival,
    });
  return Promise.resolve();
}

/** Strict mode: what the code gives now against what it gave then. */
function compareValue(given: unknown): StrictCheck {
  return ({ data }) => {
    const what = "Signal value";
    if (typeof data["given"] === "string") {
      const expected = digest(encode(given));
      return data["given"] === expected ? undefined : { what, expected, actual: data["given"] };
    }
    const [expected, actual] = [encodeInput(given), encodeInput(data["value"])];
    return expected === actual ? undefined : { what, expected, actual };
  };
}
