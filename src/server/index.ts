// reprise/server: an engine or client behind one web-standard handler: API, streams, dashboard, webhooks, metrics.

export { createServer, type ListenAt, type Server, type ServerOptions } from "./create-server.ts";
export { createMetrics, type Metrics } from "./metrics/create-metrics.ts";
export { tokenHash, type TokenSettings } from "./auth/api-token.ts";
export { addToken, listTokens, revokeToken, type NewToken, type NewTokenOptions } from "./auth/manage-tokens.ts";
export type { ApprovalLink, ApprovalLinkOptions } from "./links/make-link.ts";
export type { AuthOptions } from "./auth/server-access.ts";
export { callbackUrls, type CallbackOptions, type CallbackTarget } from "./hooks/callback-urls.ts";
export type { Hook, HookAction, HookEvent } from "./hooks/hook.ts";
export type { HookSender } from "./hooks/hook-schemes.ts";
export { serveMcp, type ExtraTool, type McpOptions } from "./mcp/serve-mcp.ts";
export { LogRing, type KeptLine } from "./log-ring.ts";
export type { ExtensionCall, ExtensionFrames, ExtensionOperation, ServerExtension } from "./extension.ts";
export type { Caller, Notice } from "./host.ts";
