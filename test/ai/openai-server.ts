// A server that speaks the chat API of OpenAI on a free loopback port, and keeps what it was sent.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ChatRequest {
  readonly stream?: boolean;
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[];
  readonly tools?: readonly unknown[];
  readonly [setting: string]: unknown;
}

export type Answer =
  | { readonly text: string }
  | { readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[] }
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** The connection breaks after this text. */
  | { readonly breaks: string }
  | { readonly hangs: true };

export interface ChatServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly ChatRequest[];
  /** How many clients closed their connection before the answer was complete. */
  readonly aborted: () => number;
}

/** `answer` gets the request and its number, from 0. */
export async function startChatServer(answer: (request: ChatRequest, n: number) => Answer): Promise<ChatServer> {
  const requests: ChatRequest[] = [];
  let aborted = 0;
  const server = createServer((request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) aborted += 1;
    });
    void readBody(request).then((body) => {
      requests.push(body);
      respond(body, answer(body, requests.length - 1), response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    aborted: () => aborted,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<ChatRequest> {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += String(part);
  return JSON.parse(text) as ChatRequest;
}

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 4,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 2 },
};

function respond(body: ChatRequest, answer: Answer, response: ServerResponse): void {
  if ("hangs" in answer) return;
  if ("status" in answer) {
    response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
    response.end(
      JSON.stringify({ error: { message: `status ${answer.status}`, type: "error", param: null, code: null } }),
    );
    return;
  }
  if (body.stream === true) return streamAnswer(answer, response);
  const message =
    "calls" in answer
      ? { role: "assistant", content: null, tool_calls: callsOf(answer.calls) }
      : { role: "assistant", content: textOf(answer) };
  const choice = { index: 0, message, finish_reason: "calls" in answer ? "tool_calls" : "stop" };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    JSON.stringify({
      id: "chat-1",
      object: "chat.completion",
      created: 1,
      model: "local",
      choices: [choice],
      usage: USAGE,
    }),
  );
}

function streamAnswer(answer: Answer, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta: object, finish: string | null = null, usage?: object): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const chunk = { id: "chat-1", object: "chat.completion.chunk", created: 1, model: "local", choices, usage };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ role: "assistant", content: "" });
  if ("calls" in answer) send({ tool_calls: callsOf(answer.calls) });
  else for (const word of textOf(answer).split(/(?<= )/)) send({ content: word });
  if ("breaks" in answer) return void setImmediate(() => response.destroy());
  send({}, "calls" in answer ? "tool_calls" : "stop", USAGE);
  response.end("data: [DONE]\n\n");
}

function textOf(answer: Answer): string {
  return "text" in answer ? answer.text : "breaks" in answer ? answer.breaks : "";
}

function callsOf(calls: readonly { id: string; name: string; input: unknown }[]): readonly object[] {
  return calls.map(({ id, name, input }, index) => ({
    index,
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
}
