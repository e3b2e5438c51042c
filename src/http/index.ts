// Http: a route table, a request handler, limits of callers, and a listener, over web-standard requests and responses. It knows neither
// runs nor peers: the rooms that serve bring their routes.

export { bearerTokenOf, findByToken, tokenDigest } from "./bearer-token.ts";
export { CallerGate } from "./caller-gate.ts";
export { RequestHandler, type RequestHandlerOptions } from "./handler.ts";
export { checkDepth, parseJson } from "./json-depth.ts";
export { HTTP_LIMITS, limitExceeded, type HttpLimits } from "./limits.ts";
export { isLoopback, listen, type ClosableHandler, type Listener, type ListenOptions } from "./listener.ts";
export type { BodyLimit } from "./read-body.ts";
export {
  decodeParams,
  findRoute,
  methodNotAllowed,
  pathPattern,
  type HttpCall,
  type HttpCaller,
  type HttpRoute,
  type Params,
  type RouteMatch,
} from "./route.ts";
export { jsonResponse, sizedResponse } from "./sized-response.ts";
