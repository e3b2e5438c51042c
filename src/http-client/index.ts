// reprise/client: the Client interface over HTTP, for Node and browsers. Nothing behind it imports a module of Node.

export { createHttpClient, type DefinitionsOf, type HttpClientOptions } from "./create-http-client.ts";
export { CancelledError, RepriseError } from "../base/portable.ts";
export type { Client, Run, RunInfo, StreamChunk, StreamReset, StreamValue } from "../engine/index.ts";
