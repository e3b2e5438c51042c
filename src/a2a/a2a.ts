// a2a: an agent of the Agent2Agent protocol as an extension of a server.
//
// a2a.A1. The agent has no state of its own: a task is a run (run-task.T1). Every server of the store answers for every task.
// a2a.A2. Requests pass the gate of the server: Host, Origin, token, role and limits. The card alone is public: it names the skills.

import { A2A_VERSION_HEADER, AGENT_CARD_PATH, AgentCard } from "@a2a-js/sdk";
import { JsonRpcTransportHandler, ServerCallContext, validateVersion, type User } from "@a2a-js/sdk/server";
import { RepriseError } from "../base/index.ts";
import { jsonResponse } from "../http/index.ts";
import type { ExtensionCall, ServerExtension } from "../server/index.ts";
import { agentCard, checkSkills, type A2AOptions, type KnownSkill } from "./agent-card.ts";
import { eventResponse } from "./event-response.ts";
import { TaskHandler } from "./task-handler.ts";

/**
 * Makes definitions an agent of the Agent2Agent protocol (A2A), for `extensions` of `createServer`: a message starts a run, a message to a
 * task that waits for input resolves its promise, and the output is the artifact of the task.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { a2a } from "reprise/a2a";
 * import { createServer } from "reprise/server";
 * const greet = workflow("greet", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [greet], logger: false });
 * const agent = a2a({
 *   name: "Greeter",
 *   description: "Greets people.",
 *   skills: [{ definition: greet, description: "Greets the person that the message names." }],
 * });
 * await using server = createServer(engine, { extensions: [agent] });
 * const card = await server.fetch(new Request("http://localhost/.well-known/agent-card.json"));
 * console.log(card.status); // 200
 * ```
 */
export function a2a(options: A2AOptions): ServerExtension {
  const skills = checkSkills(options);
  const path = checkPath(options.path ?? "/a2a");
  const cardFor = ({ address }: ExtensionCall): AgentCard => agentCard(options, skills, `${address}${path}`);
  return {
    operations: [
      {
        id: "getAgentCard",
        method: "GET",
        path: `/${AGENT_CARD_PATH}`,
        role: "public",
        summary: "The card of the agent: its skills and where it takes messages (A2A).",
        handle: (call) =>
          Promise.resolve(
            jsonResponse(AgentCard.toJSON(cardFor(call)), { headers: { "cache-control": "public, max-age=60" } }),
          ),
      },
      {
        id: "handleA2A",
        method: "POST",
        path,
        role: "viewer",
        summary: "Takes one request of the Agent2Agent protocol (JSON-RPC).",
        handle: (call) => answer(cardFor(call), skills, call),
      },
    ],
  };
}

function checkPath(path: string): `/${string}` {
  if (/^\/[\w./-]*\w$/.test(path) && !path.includes("//")) return path as `/${string}`;
  throw new RepriseError("BAD_OPTIONS", `a2a: path: expected a path such as "/a2a", got ${JSON.stringify(path)}.`);
}

async function answer(card: AgentCard, skills: readonly KnownSkill[], call: ExtensionCall): Promise<Response> {
  const { request, body } = call;
  const id = idOf(body);
  const version = request.headers.get(A2A_VERSION_HEADER) ?? undefined;
  const context = new ServerCallContext({
    user: userOf(call),
    ...(version !== undefined && { requestedVersion: version }),
  });
  try {
    validateVersion(context.requestedVersion, card, "JSONRPC");
  } catch (error) {
    return jsonResponse({ jsonrpc: "2.0", id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) });
  }
  const handler = new JsonRpcTransportHandler(new TaskHandler(card, skills, call));
  const answered = await handler.handle(isObject(body) ? body : {}, context);
  return Symbol.asyncIterator in answered
    ? eventResponse(answered, id, call.signal)
    : jsonResponse(answered, { headers: { "cache-control": "no-store" } });
}

function idOf(body: unknown): string | number | null {
  const { id } = isObject(body) ? body : {};
  return typeof id === "string" || typeof id === "number" ? id : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function userOf({ caller }: ExtensionCall): User {
  return { isAuthenticated: caller !== undefined, userName: caller?.name ?? "" };
}
