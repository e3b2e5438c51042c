// Role: which callers an operation admits. Roles are ordered; each has the rights of those before it.

import { RepriseError } from "../../base/index.ts";
import { ROLES, type Role } from "../../contract/index.ts";
import type { Caller } from "../host.ts";

export function hasRole({ role }: Pick<Caller, "role">, needed: Role): boolean {
  const [given, least] = [ROLES.indexOf(role), ROLES.indexOf(needed)];
  // An unknown role, such as of a caller that user code made, has no rights.
  return given !== -1 && least !== -1 && given >= least;
}

/** The error names its caller for the audit: `refusedCaller`. */
export function roleRequired(operation: string, needed: Role, caller: Caller): RepriseError {
  const { name, role } = caller;
  return new RepriseError(
    "ROLE_REQUIRED",
    `${operation} needs the role ${needed}; the token ${name} has the role ${role}. \`reprise token create <name> --role ${needed}\` makes one that may.`,
    { details: { status: 403, needed, caller } },
  );
}

/** The caller whose role was too low; undefined: the error is another one. */
export function refusedCaller(error: unknown): Caller | undefined {
  const { details } = error instanceof RepriseError ? error : {};
  return details?.["caller"] as Caller | undefined;
}
