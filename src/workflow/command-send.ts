// ctx.send: a message in the outbox, written by the commit that records it. A node's messages are in the commit of its
// result: an attempt that fails or is repeated sends nothing.

import { checkName } from "../base/index.ts";
import { encodeInput, encodeNamed, messageSentData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { nodeOfCaller, refuseInsideStep } from "./scope.ts";

export function sendMessage(execution: Execution, destination: string, payload: unknown): void {
  checkName(destination, "ctx.send: destination");
  refuseInsideStep();
  const text = encodeNamed(`The message to ${destination}`, payload, execution.limits);
  if (execution.refusal !== undefined) throw execution.refusal;
  const node = execution.nodes === undefined ? undefined : nodeOfCaller();
  if (node !== undefined) return void (node.messages ??= []).push({ destination, payload: text });
  const command = execution.issueCommand("Message", "SendMessage", { destination }, (recorded) => {
    if (recorded.type !== "MessageSent") return undefined;
    const actual = encodeInput(recorded.data.payload);
    return text === actual ? undefined : { what: "message payload", expected: text, actual };
  });
  if (command === undefined || command.known) return;
  const data = messageSentData(command.index, destination, text);
  execution.requests.push({ kind: "send", command: command.id, data, destination });
}
