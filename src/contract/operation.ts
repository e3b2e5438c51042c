// Operation: one line of the table of the HTTP API: method, path, role, schemas, example. Pure data, without its code.
//
// operation.O1. The table is the only place that says which requests exist, who may make them and what they carry. The server checks
//   requests with it, the OpenAPI document is made from it, and tests walk it.

import type { JsonSchema } from "./json-schema.ts";
import type { Role } from "./site.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** What an answer carries besides JSON of a schema. */
export type MediaType =
  | "text/event-stream"
  | "application/openmetrics-text"
  | "text/plain"
  | "text/html"
  | "application/jsonl"
  | "application/octet-stream";

export interface OperationSpec<Q, B, R> {
  /** The role that a caller needs; `public`: no token. */
  readonly role: Role | "public";
  readonly method: Method;
  /** `/v1/runs/{id}`: a name in braces is one segment of the path, decoded. */
  readonly path: `/${string}`;
  /** The heading in the OpenAPI document: `Runs`, `Messages`. */
  readonly group: string;
  /** One sentence: what it does. */
  readonly summary: string;
  /** The parameters of the query. A list may be repeated: `?tag=a&tag=b`. */
  readonly query?: JsonSchema<Q>;
  readonly body?: JsonSchema<B>;
  /** The largest body in bytes; default 1 MiB. */
  readonly maxBytes?: number;
  /** The status of success and what it carries; default 200. `null`: an empty body. */
  readonly status?: 200 | 201 | 202 | 204;
  readonly answer: JsonSchema<R> | MediaType | null;
  /** The body is a form of a page. Such an operation is `public`, and a secret in its path stands for the caller. */
  readonly form?: true;
  /**
   * The code gets the bytes of the body as they arrived, because a signature covers them. Such an operation is `public`, and the signature
   * or a secret in its path stands for the caller.
   */
  readonly raw?: true;
  /**
   * What a caller with scopes gets from an operation that is not about one run, definition, queue or schedule in its path. `open`: the
   * same as others, because it says nothing about runs. `filtered`: its code leaves out what the caller may not see. Absent: a refusal.
   */
  readonly scope?: "open" | "filtered";
  /** Its code chooses among several media types by the Accept header; `answer` is one of them. */
  readonly negotiates?: true;
  /** The answer holds a secret, such as a token: it is not kept for a repeated `Idempotency-Key`. */
  readonly secret?: true;
  /** It may wait or stream for longer than the time limit of a request. */
  readonly waits?: true;
  /** It carries requests for other operations, each of which is checked and audited by itself. */
  readonly relays?: true;
  /** A request and its answer that are true on a real server; tests send it. */
  readonly example: OperationExample<Q, B, R>;
}

export interface OperationExample<Q, B, R> {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Q;
  readonly body?: B;
  readonly answer?: R;
}

export interface Operation<Q = any, B = any, R = any> extends OperationSpec<Q, B, R> {}

/** Declares an operation; types of query, body and answer come from its schemas. */
export function operation<Q = undefined, B = undefined, R = undefined>(
  spec: OperationSpec<Q, B, R>,
): Operation<Q, B, R> {
  return spec;
}

export type QueryOf<O> = O extends Operation<infer Q, any, any> ? Q : never;
export type BodyOf<O> = O extends Operation<any, infer B, any> ? B : never;
export type AnswerOf<O> = O extends Operation<any, any, infer R> ? R : never;
