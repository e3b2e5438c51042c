// RPC: messages of JSON-RPC 2.0 as the Model Context Protocol uses them, without knowing how they travel.
//
// rpc.R1. A request gets exactly one answer, with its id. A notification gets none, and neither does an answer.
// rpc.R2. An error that is not a refusal leaves without its text, which may hold paths and payloads; the log gets it.

export type Params = Readonly<Record<string, unknown>>;

/** Codes of JSON-RPC and of MCP. */
export const RPC_ERROR = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  /** A header of HTTP contradicts the message. */
  header: -32_020,
  /** The client did not declare a capability that the request needs. */
  capability: -32_021,
  /** The version of the protocol is unknown. */
  version: -32_022,
} as const;

/** A message that is refused by the protocol. What a tool refuses is a result of the tool instead. */
export class RpcRefusal extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export interface RpcRequest {
  readonly id: string | number;
  readonly method: string;
  readonly params: Params;
}

export type RpcMessage =
  | { readonly kind: "request"; readonly request: RpcRequest }
  | { readonly kind: "notification"; readonly method: string; readonly params: Params }
  | { readonly kind: "answer" }
  | { readonly kind: "invalid"; readonly id: string | number | null; readonly refusal: RpcRefusal };

/** rpc.R1 */
export function readMessage(message: unknown): RpcMessage {
  const { jsonrpc, id, method, params = {}, result, error } = isObject(message) ? message : {};
  if (method === undefined && (result !== undefined || error !== undefined)) return { kind: "answer" };
  const isRequest = typeof id === "string" || typeof id === "number";
  const invalid = (code: number, text: string): RpcMessage => ({
    kind: "invalid",
    id: isRequest ? id : null,
    refusal: new RpcRefusal(code, text),
  });
  if (jsonrpc !== "2.0" || typeof method !== "string" || (id !== undefined && !isRequest))
    return invalid(RPC_ERROR.request, "The message is not a request of JSON-RPC 2.0.");
  if (!isObject(params)) return invalid(RPC_ERROR.params, "params: expected an object.");
  return isRequest ? { kind: "request", request: { id, method, params } } : { kind: "notification", method, params };
}

export interface RpcAnswer {
  readonly jsonrpc: "2.0";
  readonly id: string | number | null;
  readonly result?: object;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export function rpcResult(id: string | number, result: object): RpcAnswer {
  return { jsonrpc: "2.0", id, result };
}

/** rpc.R2 */
export function rpcFailure(id: string | number | null, thrown: unknown): RpcAnswer {
  const { code, message, data } =
    thrown instanceof RpcRefusal
      ? thrown
      : { code: RPC_ERROR.internal, message: "The server failed; its log says why.", data: undefined };
  return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
}

export function isObject(value: unknown): value is Params {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A text of the message, for a refusal. */
export function shortText(value: unknown, length = 100): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return (text ?? "nothing").slice(0, length);
}
