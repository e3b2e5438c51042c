// Message headers: what HTTP headers say about a message of MCP (mcp.H2).

import { isModernRequest, LEGACY_VERSIONS, MODERN_VERSIONS, versionOf } from "./revision.ts";
import { RPC_ERROR, RpcRefusal, shortText, type Params } from "./rpc.ts";

/** The field of `params` that `Mcp-Name` repeats, by method. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

export interface HeadedMessage {
  readonly method: string;
  readonly params?: Params | undefined;
}

/** mcp.H2. Undefined: the headers fit. */
export function headerRefusal({ method, params = {} }: HeadedMessage, headers: Headers): RpcRefusal | undefined {
  const version = headers.get("mcp-protocol-version")?.trim();
  if (!isModernRequest(params)) return legacyRefusal(method, version);
  const claimed = versionOf(params);
  if (version !== claimed) return mismatch("MCP-Protocol-Version", version, claimed);
  const named = headers.get("mcp-method")?.trim();
  if (named !== method) return mismatch("Mcp-Method", named, method);
  const value = params[NAMED.get(method) ?? ""];
  if (typeof value !== "string") return undefined;
  const given = headers.get("mcp-name")?.trim();
  return given !== undefined && decodeName(given) === value ? undefined : mismatch("Mcp-Name", given, value);
}

function legacyRefusal(method: string, version: string | undefined): RpcRefusal | undefined {
  if (version === undefined || LEGACY_VERSIONS.some((one) => one === version)) return undefined;
  if (MODERN_VERSIONS.some((one) => one === version))
    return mismatch("MCP-Protocol-Version", version, "a message without the version in `_meta`");
  // The handshake negotiates the version.
  return method === "initialize"
    ? undefined
    : new RpcRefusal(RPC_ERROR.version, `The version ${shortText(version)} of the protocol is not supported.`, {
        supported: [...MODERN_VERSIONS, ...LEGACY_VERSIONS],
        requested: version,
      });
}

function mismatch(header: string, given: string | undefined, expected: unknown): RpcRefusal {
  const what = given === undefined ? "is missing" : `is ${shortText(given)}`;
  return new RpcRefusal(RPC_ERROR.header, `The header ${header} ${what}; the message has ${shortText(expected)}.`);
}

/** A value that a header cannot hold travels as `=?base64?…?=`. */
function decodeName(given: string): string {
  const [, encoded] = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(given) ?? [];
  return encoded === undefined ? given : Buffer.from(encoded, "base64").toString("utf8");
}
