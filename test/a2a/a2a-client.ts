// A2A client: the official client of the Agent2Agent protocol, connected to a server of this process.

import { Role, type Message, type StreamResponse, type Task } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, type Client } from "@a2a-js/sdk/client";
import type { Server } from "reprise/server";
import { ORIGIN, tokenFor } from "../server/auth-fixture.ts";

/** A client with the token of this name. */
export async function connectAgent(server: Server, token = "operator"): Promise<Client> {
  const fetchImpl: typeof fetch = (url, init) => {
    const request = new Request(url, init);
    request.headers.set("authorization", `Bearer ${tokenFor(token)}`);
    return server.fetch(request);
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return factory.createFromUrl(ORIGIN);
}

export function message(id: string, value: unknown, more: Partial<Message> = {}): Message {
  return {
    messageId: id,
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [
      {
        content: typeof value === "string" ? { $case: "text", value } : { $case: "data", value },
        metadata: undefined,
        filename: "",
        mediaType: typeof value === "string" ? "text/plain" : "application/json",
      },
    ],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
}

/** Sends a message; the task that it is about. */
export async function send(client: Client, given: Message, returnImmediately = false): Promise<Task> {
  return (await client.sendMessage({
    tenant: "",
    message: given,
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately,
    },
    metadata: undefined,
  })) as Task;
}

export function streamOf(client: Client, given: Message): AsyncGenerator<StreamResponse, void, undefined> {
  return client.sendMessageStream({ tenant: "", message: given, configuration: undefined, metadata: undefined });
}

/** The value of the only part of a task's output. */
export function outputOf({ artifacts }: Task): unknown {
  return artifacts[0]?.parts[0]?.content?.value;
}

export function getTask(client: Client, id: string): Promise<Task> {
  return client.getTask({ tenant: "", id });
}
