// Payload module: the module of --codec, which exports the codec of payloads and the redaction rules. It is loaded once,
// before the command runs, because every command that opens a store needs it.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { checkCodec, RepriseError, type PayloadCodec } from "../base/index.ts";
import { checkRedact, Redaction, type RedactOptions, registerSecrets } from "../kernel/index.ts";

let codec: PayloadCodec | undefined;
let redact: false | RedactOptions | undefined;
let redaction = new Redaction();

/** Loads the module. Refuses a module that exports neither `codec` nor `redact`. */
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
      `--codec: ${path} exports neither \`codec\` nor \`redact\`. Add: export const codec = aesGcm({ … });`,
    );
}

/** Options for `createEngine` and `createClient`. */
export function payloadOptions(): { codec?: PayloadCodec; contents?: string; redact?: false | RedactOptions } {
  const { REPRISE_CONTENTS: contents } = process.env;
  return {
    ...(codec && { codec }),
    ...(contents !== undefined && contents !== "" && { contents }),
    ...(redact !== undefined && { redact }),
  };
}

export function payloadCodec(): PayloadCodec | undefined {
  return codec;
}

/** The value without secrets. */
export function redacted<T>(value: T): T {
  return redaction.data(value);
}
