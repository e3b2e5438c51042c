// The MCP endpoint of a server, made with the server.

import { ENGINE_NAME, InvariantError } from "../../base/index.ts";
import type { ServerHost } from "../host.ts";
import type { Operations } from "./call-operation.ts";
import { McpEndpoint, type Allow } from "./endpoint.ts";
import type { McpTool } from "./tool.ts";

export function mcpEndpoint(
  operations: Operations,
  allow: Allow,
  onError: (error: unknown) => void,
  tools: readonly McpTool[] = [],
): McpEndpoint {
  return new McpEndpoint({ version: ENGINE_NAME.replace(/^.*[/@]/, ""), operations, allow, onError, tools });
}

const endpoints = new WeakMap<ServerHost, McpEndpoint>();

export function setMcpEndpoint(host: ServerHost, endpoint: McpEndpoint): void {
  endpoints.set(host, endpoint);
}

export function mcpEndpointOf(host: ServerHost): McpEndpoint {
  const endpoint = endpoints.get(host);
  if (endpoint === undefined) throw new InvariantError("The server has no MCP endpoint.");
  return endpoint;
}
