// ctx.send: a message to the outside, in the commit that records it; from a node, in the commit of the node's result: an
// attempt that fails, or is repeated, has sent nothing.

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
  const command = execution.command("Message", "SendMessage", { destination }, (recorded) => {
    const then = encodeInput(recorded.data["payload"]);
    return text === then ? undefined : { what: "Message payload", expected: text, actual: then };
  });
  if (command === undefined || command.known) return;
  const data = messageSentData(command.index, destination, text);
  execution.asks.push({ ask: "send", command: command.id, data, destination });
}
