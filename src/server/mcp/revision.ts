// Revision: which version of MCP a message is of.
//
// revision.V1. Since 2026-07-28 every request says its version and the capabilities of its client in `_meta`; there is no handshake. A
//   message without them is of an earlier version, whose handshake is `initialize`. So every message is judged by itself, and a server keeps
//   nothing about its clients.

import { isObject, RPC_ERROR, RpcRefusal, shortText, type Params } from "./rpc.ts";

export const MODERN_VERSIONS = ["2026-07-28"] as const;
/** The newest first: a client that asks for another one gets this. */
export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";
export const SERVER_KEY = "io.modelcontextprotocol/serverInfo";

/** What a request says about its client. */
export interface Revision {
  readonly isModern: boolean;
  readonly version?: string;
  readonly capabilities: Params;
}

const LEGACY: Revision = { isModern: false, capabilities: {} };

/** The version that a request names, whatever it is. */
export function versionOf({ _meta: meta }: Params): unknown {
  return isObject(meta) ? meta[VERSION_KEY] : undefined;
}

/** revision.V1 */
export function isModernRequest(params: Params): boolean {
  return versionOf(params) !== undefined;
}

export function revisionOf(params: Params): Revision {
  const version = versionOf(params);
  if (version === undefined) return LEGACY;
  if (typeof version !== "string")
    throw new RpcRefusal(RPC_ERROR.params, `_meta.${VERSION_KEY}: expected a text, such as ${MODERN_VERSIONS[0]}.`);
  if (!MODERN_VERSIONS.some((one) => one === version))
    throw new RpcRefusal(RPC_ERROR.version, `The version ${shortText(version)} of the protocol is not supported.`, {
      supported: [...MODERN_VERSIONS],
      requested: version,
    });
  const { [CAPABILITIES_KEY]: capabilities } = params["_meta"] as Params;
  if (!isObject(capabilities)) throw new RpcRefusal(RPC_ERROR.params, `_meta.${CAPABILITIES_KEY}: expected an object.`);
  return { isModern: true, version, capabilities };
}

export function hasExtension({ isModern, capabilities }: Revision, name: string): boolean {
  const { extensions } = capabilities;
  return isModern && isObject(extensions) && isObject(extensions[name]);
}

/** Whether the client can ask a person with a form. */
export function hasForms({ capabilities: { elicitation } }: Revision): boolean {
  return isObject(elicitation) && (Object.keys(elicitation).length === 0 || isObject(elicitation["form"]));
}

/** Results that clients may keep for some time. */
const CACHED: ReadonlySet<string> = new Set([
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
]);

/** A result as the version of its request writes it. */
export function resultFor(revision: Revision, method: string, result: object, server: object): object {
  if (!revision.isModern) return result;
  return {
    resultType: "complete",
    ...(CACHED.has(method) && { ttlMs: 0, cacheScope: "private" }),
    ...result,
    _meta: { [SERVER_KEY]: server },
  };
}
