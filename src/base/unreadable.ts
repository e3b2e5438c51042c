// Unreadable: a payload the codec cannot bring back travels as a text that says so and refuses to be decoded. One of them
// among many then hurts only the run it belongs to, and no statement fails because of it.

import { isErrorCode } from "./error-catalogue.ts";
import { RepriseError } from "./errors.ts";

/** The first byte of every payload a codec wrote. No text of ours begins with it: JSON cannot. */
export const SEALED = 0x01;
const SEALED_CHAR = "\u0001";

export function unreadableText({ code, message, details }: RepriseError): string {
  return SEALED_CHAR + JSON.stringify({ code, message, details });
}

/** Why a text cannot be decoded; undefined when it is not one of these. */
export function unreadableReason(text: string): RepriseError | undefined {
  if (!text.startsWith(SEALED_CHAR)) return undefined;
  try {
    const { code, message, details } = JSON.parse(text.slice(1)) as {
      code: unknown;
      message: string;
      details?: Record<string, unknown>;
    };
    if (isErrorCode(code)) return new RepriseError(code, message, details && { details });
  } catch {
    // Not ours: the bytes of a codec, read by a process that has none.
  }
  return new RepriseError(
    "PAYLOAD_KEY_MISSING",
    "This payload was written with a codec, and this process has none. Give `codec` to createEngine, or --codec to the command, then resume the run.",
  );
}
