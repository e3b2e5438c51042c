// Audit: one log line for each request that changes state: who, what, on which run, why, and what came of it.
//
// audit.A1. The line has no payload and no token. `reason` is a text that the caller wrote for people to read.
// audit.A2. A refused request has a line as well: a denied attempt is what an operator looks for.

import type { Operation } from "../../contract/index.ts";
import type { Logger } from "../../kernel/index.ts";
import type { Caller } from "../host.ts";

export interface AuditedCall {
  /** The name of the operation in the table, such as `cancelRun`. */
  readonly name: string;
  readonly operation: Operation;
  readonly caller: Caller | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly status: number;
  /** The code of the refusal. */
  readonly code?: string;
}

const MAX_REASON = 200;

/** Whether requests of the operation change state. The code of a form knows its caller, and writes the line itself (`auditForm`). */
export function isAudited({ method, form }: Operation): boolean {
  return method !== "GET" && form !== true;
}

/** What a line of a form says. */
export interface AuditedForm {
  readonly caller: string;
  readonly run: string;
  readonly port: string;
  readonly reason?: string;
  readonly status: number;
}

export function auditForm(logger: Logger, name: string, { reason, status, ...rest }: AuditedForm): void {
  logger.info(`audit ${name}`, {
    ...rest,
    ...(reason !== undefined && { reason: reason.slice(0, MAX_REASON) }),
    outcome: outcomeOf(status),
    status,
  });
}

function outcomeOf(status: number): "done" | "refused" {
  return status < 400 ? "done" : "refused";
}

/** audit.A1 */
export function auditLine(logger: Logger, { name, operation, caller, params, body, status, code }: AuditedCall): void {
  const run = /^\/v1\/runs\/\{(\w+)\}/.exec(operation.path)?.[1];
  const { reason } = (typeof body === "object" && body !== null ? body : {}) as { readonly reason?: unknown };
  logger.info(`audit ${name}`, {
    caller: caller?.name ?? "anonymous",
    ...(caller !== undefined && { role: caller.role }),
    ...(run !== undefined && { run: params[run] }),
    ...objectOf(params, run),
    ...(typeof reason === "string" && { reason: reason.slice(0, MAX_REASON) }),
    outcome: outcomeOf(status),
    status,
    ...(code !== undefined && { code }),
  });
}

/** The other names of the path: a port, a queue, a schedule. Not of a link: its path is a secret. */
function objectOf(params: Readonly<Record<string, string>>, run: string | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => name !== run && name !== "token"));
}
