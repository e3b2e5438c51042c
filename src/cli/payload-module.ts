// The module named by --codec: how payloads are read and written, and what is secret in them. Set once, before a command
// begins, because every command that opens a store needs it.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { checkCodec, RepriseError, type PayloadCodec } from "../base/index.ts";
import { checkRedact, Redaction, type RedactOptions, registerSecrets } from "../kernel/index.ts";

let codec: PayloadCodec | undefined;
let redact: false | RedactOptions | undefined;
let redaction = new Redaction();

/** Loads the module, and refuses one that does not help. */
export async function usePayloadModule(file: string): Promise<void> {
  const path = resolve(file);
  if (!existsSync(path)) throw new RepriseError("USAGE", `--codec: there is no file ${path}.`);
  let found: { codec?: unknown; default?: unknown; redact?: unknown };
  try {
    found = (await import(pathToFileURL(path).href)) as typeof found;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new RepriseError("USAGE", `--codec: ${path} cannot be loaded: ${reason}`, { cause });
  }
  codec = checkCodec(found.codec ?? found.default);
  redact = found.redact as false | RedactOptions | undefined;
  redaction = checkRedact(redact);
  if (redaction.values !== undefined) registerSecrets(redaction.values);
  if (codec === undefined && redact === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `--codec: ${path} exports neither \`codec\` nor \`redact\`. Write: export const codec = aesGcm({ … });`,
    );
}

/** For `createEngine`. */
export function payloadOptions(): { codec?: PayloadCodec; redact?: false | RedactOptions } {
  return { ...(codec && { codec }), ...(redact !== undefined && { redact }) };
}

export function payloadCodec(): PayloadCodec | undefined {
  return codec;
}

/** What may be shown of a value. */
export function shown<T>(value: T): T {
  return redaction.data(value);
}
