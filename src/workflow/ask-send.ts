// ctx.send: a message to the outside, in the commit that records it.

import { checkName } from "../base/index.ts";
import { encodeInput, encodeNamed, messageSentData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";

export function sendMessage(execution: Execution, destination: string, payload: unknown): void {
  checkName(destination, "ctx.send: destination");
  const text = encodeNamed(`The message to ${destination}`, payload, execution.limits);
  if (execution.refusal !== undefined) throw execution.refusal;
  const command = execution.command("Message", "SendMessage", { destination }, (recorded) => {
    const then = encodeInput(recorded.data["payload"]);
    return text === then ? undefined : { what: "Message payload", expected: text, actual: then };
  });
  if (command === undefined || command.known) return;
  const data = messageSentData(command.index, destination, text);
  execution.asks.push({ ask: "send", command: command.id, data, destination });
}
