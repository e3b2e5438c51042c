// Unreadable: a payload that the codec cannot decode is passed on as a text that contains the reason, and that `decode` refuses.
// So one damaged payload affects only its own run, and no statement fails because of it.

import { isErrorCode } from "./error-catalogue.ts";
import { RepriseError } from "./errors.ts";

/** The first byte of every payload that a codec wrote. JSON cannot begin with it. */
export const CODEC_MARK = 0x01;
const CODEC_MARK_CHAR = "\u0001";

export function unreadableText({ code, message, details }: RepriseError): string {
  return CODEC_MARK_CHAR + JSON.stringify({ code, message, details });
}

/** Why a text cannot be decoded; undefined for an ordinary text. */
export function unreadableReason(text: string): RepriseError | undefined {
  if (!text.startsWith(CODEC_MARK_CHAR)) return undefined;
  try {
    const { code, message, details } = JSON.parse(text.slice(1)) as {
      code: unknown;
      message: string;
      details?: Record<string, unknown>;
    };
    if (isErrorCode(code)) return new RepriseError(code, message, details && { details });
  } catch {
    // Bytes of a codec, read by a process that has none.
  }
  return new RepriseError(
    "PAYLOAD_KEY_MISSING",
    "This payload was written with a codec, and this process has none. Pass `codec` to createEngine, or --codec to the command.",
  );
}
