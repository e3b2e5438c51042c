// A server that speaks the protocol of chat completions, as most providers and local model servers do. It follows the script of
// examples/support-agent, bills every request in full, also if its client dies, and can refuse some of them.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { replyTo, type Reply, type Style, type ToolResult } from "../../examples/support-agent/script.ts";

export interface Completion {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly stream?: boolean;
  readonly max_tokens?: number;
}

interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string | null;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
}

export interface BilledRequest extends Completion {
  readonly authorization: string | undefined;
  /** Zero if it was refused. */
  readonly billed: { readonly input: number; readonly output: number };
}

export interface CompletionsOptions {
  /** Before every word of a stream. */
  readonly onWord?: () => Promise<void>;
}

export interface CompletionsServer extends AsyncDisposable {
  readonly url: string;
  /** The requests that were answered or refused, in the order of their arrival. */
  readonly requests: readonly BilledRequest[];
  /** Refuses the next request with this status. */
  refuseNext(status: number, headers?: Record<string, string>): void;
}

export async function startCompletions(
  styles: Readonly<Record<string, Style>>,
  { onWord = async () => {} }: CompletionsOptions = {},
): Promise<CompletionsServer> {
  const requests: BilledRequest[] = [];
  const refusals: { readonly status: number; readonly headers: Record<string, string> }[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const completion = JSON.parse(await text(request)) as Completion;
    const { authorization } = request.headers;
    const refusal = refusals.shift();
    if (refusal !== undefined) {
      requests.push({ ...completion, authorization, billed: { input: 0, output: 0 } });
      response.writeHead(refusal.status, { "content-type": "application/json", ...refusal.headers });
      response.end(JSON.stringify({ error: { message: `refused with ${refusal.status}` } }));
      return;
    }
    const question = completion.messages.findLast(({ role }) => role === "user")?.content ?? "";
    const reply = replyTo(question, resultsIn(completion), styles[completion.model] ?? "friendly");
    const { usage } = endOf(reply, completion);
    requests.push({
      ...completion,
      authorization,
      billed: { input: usage.prompt_tokens, output: usage.completion_tokens },
    });
    if (completion.stream === true) await sendChunks(response, completion, reply, onWord);
    else sendWhole(response, completion, reply);
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    refuseNext: (status, headers = {}) => void refusals.push({ status, headers }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function resultsIn({ messages }: Completion): ToolResult[] {
  const names = new Map(
    messages.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => [call.id, call.function.name] as const)),
  );
  const results = messages.filter(({ role }) => role === "tool");
  return results.map(({ tool_call_id: id = "", content }) => ({ tool: names.get(id) ?? "", output: valueOf(content) }));
}

function valueOf(content: string | null): unknown {
  try {
    return JSON.parse(content ?? "null") as unknown;
  } catch {
    return content;
  }
}

function toolCallsOf({ calls }: Reply): object[] {
  return calls.map(({ id, tool, input }, index) => ({
    index,
    id,
    type: "function",
    function: { name: tool, arguments: JSON.stringify(input) },
  }));
}

function tokensIn(value: unknown): number {
  return Math.ceil(JSON.stringify(value).length / 4);
}

interface End {
  readonly finish: string;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number };
}

function endOf(reply: Reply, completion: Completion): End {
  const [prompt, output] = [tokensIn(completion.messages), tokensIn(reply)];
  const usage = { prompt_tokens: prompt, completion_tokens: output, total_tokens: prompt + output };
  return { finish: reply.calls.length > 0 ? "tool_calls" : "stop", usage };
}

function sendWhole(response: ServerResponse, completion: Completion, reply: Reply): void {
  const { finish, usage } = endOf(reply, completion);
  const message = { role: "assistant", content: reply.text, tool_calls: toolCallsOf(reply) };
  const body = { id: "1", model: completion.model, choices: [{ index: 0, message, finish_reason: finish }], usage };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

async function sendChunks(
  response: ServerResponse,
  completion: Completion,
  reply: Reply,
  onWord: () => Promise<void>,
): Promise<void> {
  const { finish, usage } = endOf(reply, completion);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta: object, more: object = {}): void => {
    const choices = [{ index: 0, delta, ...more }];
    response.write(`data: ${JSON.stringify({ id: "1", model: completion.model, choices })}\n\n`);
  };
  for (const word of reply.text.match(/\S+\s*/g) ?? []) {
    await onWord();
    send({ role: "assistant", content: word });
  }
  for (const call of toolCallsOf(reply)) send({ tool_calls: [call] });
  send({}, { finish_reason: finish });
  response.write(`data: ${JSON.stringify({ id: "1", model: completion.model, choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}
