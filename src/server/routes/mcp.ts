// POST /mcp: a message of the Model Context Protocol over streamable HTTP, answered with JSON.
//
// mcp.H1. There are no sessions and no stream of the server's own: `GET` and `DELETE` are refused with 405, as the protocol says.
// mcp.H2. Since 2026-07-28 headers repeat the version, the method and the name of a request for proxies to route by. A header that says
//   something else than the message is refused: a proxy may have decided by it.

import type { mcpOperations } from "../../contract/index.ts";
import { jsonResponse } from "../../http/index.ts";
import type { Call, HandlersOf } from "../host.ts";
import { mcpEndpointOf } from "../mcp/endpoint-of.ts";
import { headerRefusal } from "../mcp/message-headers.ts";
import { RPC_ERROR, rpcFailure, type RpcAnswer } from "../mcp/rpc.ts";

export const mcpHandlers: HandlersOf<typeof mcpOperations> = {
  async handleMcp({ host, caller, body, request, signal }: Call<typeof mcpOperations.handleMcp>) {
    const { id } = body;
    const refusal = id === undefined ? undefined : headerRefusal(body, request.headers);
    if (refusal !== undefined) return respond(rpcFailure(id!, refusal));
    // The table has a role for this operation, so there is a caller.
    const answer = await mcpEndpointOf(host).answer(body, { caller: caller!, signal });
    return answer === undefined ? new Response(null, { status: 202 }) : respond(answer);
  },
};

/** Errors of the message itself have a status; those of what it asks for are an answer like any other. */
const STATUS: Readonly<Record<number, number>> = {
  [RPC_ERROR.request]: 400,
  [RPC_ERROR.method]: 404,
  [RPC_ERROR.header]: 400,
  [RPC_ERROR.capability]: 400,
  [RPC_ERROR.version]: 400,
};

function respond(answer: RpcAnswer): Response {
  const status = answer.error === undefined ? 200 : (STATUS[answer.error.code] ?? 200);
  return jsonResponse(answer, { status, headers: { "cache-control": "no-store" } });
}
