// Problem: how an error leaves the server: `application/problem+json` (RFC 9457).
//
// problem.P1. `code` is of the error catalogue, and clients decide by it. `hint` is the command that the message names, else the next step
//   of the catalogue. The status is `details.status` of the error, else that of its code.
// problem.P2. An error that is not a refusal is our bug or the machine's: the client gets INVARIANT without its text, which may hold paths
//   and payloads; the log gets the error.
// problem.P3. A client that sends `Prefer: errors=tagged` gets the error itself besides, with its details and its cause, in the form of the codec.

import { ERROR_CATALOGUE, RepriseError, type ErrorCode } from "../base/index.ts";
import type { JsonIssue, ProblemBody } from "../contract/index.ts";
import { sizedResponse } from "../http/index.ts";
import { payloadToWire } from "./wire-payload.ts";

const STATUS: Readonly<Record<string, number>> = {
  TOKEN_REQUIRED: 401,
  WEBHOOK_REFUSED: 401,
  BUDGET_REACHED: 402,
  NOT_ADMITTED: 403,
  ROLE_REQUIRED: 403,
  WRONG_ORIGIN: 403,
  NOT_PUBLISHED: 404,
  NO_QUERY_HANDLER: 404,
  UNKNOWN_DEFINITION: 404,
  UNKNOWN_PORT: 404,
  UNKNOWN_TASK: 404,
  NOT_RETRYABLE: 409,
  PROMISE_ALREADY_RESOLVED: 409,
  RUN_ENDED: 409,
  RUN_IN_USE: 409,
  START_CONFLICT: 409,
  LINK_CLOSED: 410,
  PAYLOAD_TOO_LARGE: 413,
  WRONG_HOST: 421,
  LIMIT_EXCEEDED: 429,
  RESULT_TIMEOUT: 504,
};

/** The status of a code; undefined: such an error is not a refusal. */
function statusOfCode(code: ErrorCode): number | undefined {
  const fixed = STATUS[code];
  if (fixed !== undefined) return fixed;
  if (code.endsWith("_NOT_FOUND")) return 404;
  const { family } = ERROR_CATALOGUE[code];
  if (family === "usage") return 400;
  if (family === "determinism") return 409;
  // How a run ended is what the client asked for, and no failure of the server.
  if (family === "outcome" || family === "federation") return 422;
  // Of the others only these pass by themselves.
  return code === "STORE_BUSY" || code === "STORE_UNREACHABLE" ? 503 : undefined;
}

/** Seconds after which a refused client may try again. */
const RETRY_AFTER: Readonly<Record<number, string>> = { 425: "1", 429: "1", 503: "1", 504: "1" };

const UNEXPECTED: Omit<ProblemBody, "type"> = {
  title: ERROR_CATALOGUE.INVARIANT.summary,
  status: 500,
  detail: "The server could not answer this request; its log says why.",
  code: "INVARIANT",
};

/** problem.P1, problem.P2. `base`: the address of the server, under which `errors/<code>` explains the code. */
export function problemResponse(
  error: unknown,
  base: string,
  onError: (error: unknown) => void,
  isTagged = false,
): Response {
  const problem = problemOf(error);
  if (problem.status === 500) onError(error);
  const headers = new Headers({ "content-type": "application/problem+json", "cache-control": "no-store" });
  const details = error instanceof RepriseError ? (error.details ?? {}) : {};
  if (problem.status === 401) headers.set("www-authenticate", 'Bearer realm="reprise"');
  if (typeof details["allow"] === "string") headers.set("allow", details["allow"]);
  const retryAfter = typeof details["retryAfter"] === "number" ? String(details["retryAfter"]) : undefined;
  const wait = retryAfter ?? RETRY_AFTER[problem.status];
  if (wait !== undefined) headers.set("retry-after", wait);
  // problem.P3
  const exact = isTagged && problem.status !== 500 ? { error: payloadToWire(error, "tagged") } : {};
  const body: ProblemBody = { type: `${base}errors/${problem.code}`, ...problem, ...exact };
  return sizedResponse(`${JSON.stringify(body)}\n`, { status: problem.status, headers });
}

/** The status and code of an error, for the log. */
export function refusalOf(error: unknown): { readonly status: number; readonly code: string } {
  const { status, code } = problemOf(error);
  return { status, code };
}

export function problemOf(error: unknown): Omit<ProblemBody, "type"> {
  if (!(error instanceof RepriseError)) return UNEXPECTED;
  const { code, message, details = {} } = error;
  const status = typeof details["status"] === "number" ? details["status"] : statusOfCode(code);
  if (status === undefined || status < 400 || status > 599) return UNEXPECTED;
  const { summary, next } = ERROR_CATALOGUE[code];
  const { run, issues } = details;
  const runId = typeof run === "string" ? run : typeof details["id"] === "string" ? details["id"] : undefined;
  return {
    title: summary,
    status,
    detail: message,
    code,
    hint: commandIn(message) ?? (runId === undefined ? next : next.replaceAll("<id>", runId)),
    ...(runId !== undefined && { run: runId }),
    ...(isIssues(issues) && {
      issues: issues.map(({ path, message: what }) => ({ path: textOf(path), message: what })),
    }),
  };
}

/** The command of the command line that a message names. */
function commandIn(message: string): string | undefined {
  return /`(reprise [^`]+)`/.exec(message)?.[1];
}

interface Issue {
  readonly path?: JsonIssue["path"] | readonly string[];
  readonly message: string;
}

function isIssues(issues: unknown): issues is readonly Issue[] {
  return Array.isArray(issues);
}

function textOf(path: Issue["path"] = "$"): string {
  return typeof path === "string" ? path : ["$", ...path].join(".");
}
