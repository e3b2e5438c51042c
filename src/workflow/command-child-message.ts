// child.signal and child.cancel: messages to a child. The commit that records a message also sends it, so each is sent once.

import { checkName, digest, encode, RepriseError } from "../base/index.ts";
import { parseNow, type Arrival, type EntryFields, type Schema } from "../kernel/index.ts";
import type { ChildMessageRequest } from "./command-request.ts";
import type { RequestedChild } from "./command-child.ts";
import { isViolation, type StrictCheck } from "./command-matcher.ts";
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
import { never, rejected, describeDefinition } from "./refusals.ts";
import { refuseInsideStep } from "./scope.ts";

/** child.signal */
export function signalChild(execution: Execution, child: RequestedChild, name: string, given: unknown): Promise<void> {
  const { definition } = child;
  checkName(name, "port name");
  const ports = isWorkflow(definition) ? workflowBody(definition).ports : {};
  const port = Object.hasOwn(ports, name) ? ports[name] : undefined;
  if (port?.port !== "signal")
    throw new RepriseError(
      "UNKNOWN_PORT",
      `${describeDefinition(definition)} has no signal \`${name}\`. Its ports are: ${Object.keys(ports).join(", ") || "none"}.`,
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
export function cancelChild(execution: Execution, child: RequestedChild): Promise<void> {
  const arrival: Arrival = { type: "CancelRequested", target: "", data: cancelRequestedData(undefined) };
  return send(execution, child, "ChildCancelRequested", {}, arrival, undefined, (index) =>
    childCancelRequestedData(index, child.id),
  );
}

function send(
  execution: Execution,
  child: RequestedChild,
  type: ChildMessageRequest["type"],
  fields: EntryFields,
  arrival: Arrival,
  compare: StrictCheck | undefined,
  dataOf: (index: number) => string,
): Promise<void> {
  refuseInsideStep();
  const { refusal } = execution;
  if (refusal !== undefined) return rejected(refusal);
  if (child.isDetached)
    throw new RepriseError(
      "USAGE",
      `Child ${child.id} is detached: this run cannot send messages to it. Use \`engine.get(definition, "${child.id}")\` outside the workflow.`,
    );
  if (child.command === undefined || execution.stop !== undefined || execution.isUndoing) return never();
  const command = execution.commands.issueChildMessage(child.command, child.sent, type, fields, compare);
  child.sent += 1;
  if (isViolation(command)) {
    execution.violate(command);
    return never();
  }
  if (!command.known)
    execution.requests.push({
      kind: "child-message",
      type,
      command: command.id,
      data: dataOf(command.index),
      childId: child.id,
      arrival,
    });
  return Promise.resolve();
}

/** Strict mode: compares the value that the code passes with the recorded one. */
function compareValue(given: unknown): StrictCheck {
  return ({ type, data }) => {
    if (type !== "ChildSignalled") return undefined;
    const what = "signal value";
    if (data.given !== undefined) {
      const expected = digest(encode(given));
      return data.given === expected ? undefined : { what, expected, actual: data.given };
    }
    const [expected, actual] = [encodeInput(given), encodeInput(data.value)];
    return expected === actual ? undefined : { what, expected, actual };
  };
}
