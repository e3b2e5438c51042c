// reprise/client: the Client interface over HTTP, for Node and browsers.

export type { ProblemBody } from "../contract/index.ts";
