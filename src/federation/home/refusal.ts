// Refusal: why a batch is not taken. The code is stable: the other site decides by it.

import { RepriseError } from "../../base/index.ts";

export class Refusal extends Error {
  readonly code: string;

  constructor(code: string, reason: string) {
    super(reason);
    this.code = code;
  }
}

export function refused(
  code: string,
  reason: string,
): { readonly status: "refused"; readonly code: string; readonly reason: string } {
  return { status: "refused", code, reason };
}

/** The other site sent what this one must refuse. Any other error is about this site. */
export function isRepriseFederationError(error: unknown): error is RepriseError {
  return error instanceof RepriseError && error.family === "federation";
}
