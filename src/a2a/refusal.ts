// Refusal: an error of an operation as an error of A2A.
//
// refusal.R1. The message of a refusal stays, with its code in front, because it says what to do. The text of any other error stays in the
//   log: it may hold paths and payloads (problem.P2).

import {
  A2AError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import { RepriseError } from "../base/index.ts";

/** refusal.R1 */
export function refusalFor(error: unknown, report: (error: unknown) => void): Error {
  if (error instanceof A2AError) return error;
  if (error instanceof RepriseError) {
    const { code, message, family } = error;
    const options = { message: `${code}: ${message}`, cause: error, metadata: { code } };
    if (code === "RUN_NOT_FOUND") return new TaskNotFoundError(options);
    if (code === "RUN_ENDED") return new TaskNotCancelableError(options);
    if (code === "ROLE_REQUIRED" || code === "PROMISE_ALREADY_RESOLVED") return new UnsupportedOperationError(options);
    if (family === "usage" && code !== "ENGINE_CLOSED") return new RequestMalformedError(options);
  }
  report(error);
  return new A2AError("The server could not answer this request; its log says why.");
}
