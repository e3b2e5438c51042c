// reprise/server: an engine or client behind one web-standard handler: API, streams, dashboard, webhooks, metrics.

export type { Call, Caller, HandlerOf, HandlersOf, ServerHost } from "./host.ts";
