// Error response: how a refusal leaves the server.
//
// error-response.E1. The body is `{"code", "message"}`: the code of the error catalogue, which clients decide by, and the sentence for
//   the operator. The status is for caches and proxies: `details.status` of the error, else that of the code.
// error-response.E2. An error that is not a refusal is our bug or the machine's: the client gets INVARIANT without its text, which may
//   hold paths and payloads; `onError` gets the error.

import { RepriseError, type ErrorCode } from "../../base/index.ts";

const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  BAD_FORMAT: 400,
  BAD_OPTIONS: 400,
  USAGE: 400,
  NOT_ADMITTED: 403,
  NOT_PUBLISHED: 404,
  FORKED: 409,
  OUTDATED_CURSOR: 409,
  LIMIT_EXCEEDED: 413,
};

/** error-response.E1 */
export function errorResponse(error: unknown, onError: (error: unknown) => void): Response {
  const status = statusOf(error);
  if (!(error instanceof RepriseError) || status === undefined) {
    onError(error);
    return refusal(500, "INVARIANT", "The server could not answer this request; its log says why.");
  }
  return refusal(status, error.code, messageOf(error));
}

/** Limits that the HTTP server itself keeps are announced as the others are. */
function messageOf({ message, details }: RepriseError): string {
  const { limit, what } = details ?? {};
  return typeof what === "string"
    ? `${what} The limit is \`${String(limit)}\`: \`GET /\` announces its value.`
    : message;
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof RepriseError)) return undefined;
  const { status } = error.details ?? {};
  if (typeof status === "number") return status;
  return STATUS[error.code] ?? (error.family === "federation" ? 422 : undefined);
}

function refusal(status: number, code: ErrorCode, message: string): Response {
  const headers = new Headers({ "content-type": "application/json", "cache-control": "no-store" });
  if (status === 401) headers.set("www-authenticate", 'Bearer realm="reprise"');
  if (status === 429) headers.set("retry-after", "1");
  return new Response(`${JSON.stringify({ code, message })}\n`, { status, headers });
}
