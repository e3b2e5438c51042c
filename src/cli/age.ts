// Age: bundles encrypted for a recipient (age-encryption.org), with the optional package `age-encryption`.

import { readFile } from "node:fs/promises";
import { ReadableStream } from "node:stream/web";
import type * as age from "age-encryption";
import { RepriseError } from "../base/index.ts";
import { CommandError } from "./command-error.ts";

/** The first bytes of a file that age wrote. */
export const AGE_HEAD = "age-encryption.org/";

type Bytes = AsyncIterable<Uint8Array>;
type AgeStream = globalThis.ReadableStream<Uint8Array>;

async function loadAge(option: string): Promise<typeof age> {
  try {
    return await import("age-encryption");
  } catch (cause) {
    throw new CommandError(
      "BAD_OPTIONS",
      `${option} needs the package \`age-encryption\`, which is not installed. Run \`npm install age-encryption\`.`,
      "npm install age-encryption",
      { cause },
    );
  }
}

/** Checks the recipients before anything is written; returns what encrypts for all of them. */
export async function encrypterFor(recipients: readonly string[]): Promise<(plain: Bytes) => Promise<Bytes>> {
  const { Encrypter } = await loadAge("--to");
  const encrypter = new Encrypter();
  for (const recipient of recipients)
    try {
      encrypter.addRecipient(recipient);
    } catch (cause) {
      throw new RepriseError(
        "BAD_OPTIONS",
        `--to: ${JSON.stringify(recipient)} is not an age recipient. Expected age1…, as \`age-keygen\` prints it.`,
        { cause },
      );
    }
  return async (plain) => encrypter.encrypt(ReadableStream.from(plain) as unknown as AgeStream);
}

/** The plain bytes of an encrypted file, with the identities of a file (`AGE-SECRET-KEY-1…`, one per line). */
export async function* decrypted(file: string, encrypted: Bytes, identities: string): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await loadAge("--identity");
  const decrypter = new Decrypter();
  for (const line of await readIdentities(identities)) addIdentity(decrypter, line, identities);
  let plain: Bytes;
  try {
    plain = await decrypter.decrypt(ReadableStream.from(encrypted) as unknown as AgeStream);
  } catch (cause) {
    throw new RepriseError(
      "BAD_OPTIONS",
      `--identity: no identity in ${identities} decrypts ${file}. Use the identity of the recipient that it was encrypted for.`,
      { cause },
    );
  }
  try {
    yield* plain;
  } catch (cause) {
    throw new RepriseError(
      "BUNDLE_DAMAGED",
      `${file} cannot be decrypted: its bytes were changed, or its end is missing.`,
      {
        cause,
      },
    );
  }
}

async function readIdentities(file: string): Promise<readonly string[]> {
  const text = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new RepriseError("BAD_OPTIONS", `--identity: ${file} cannot be read: ${(cause as Error).message}.`, {
      cause,
    });
  });
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}

/** The message does not contain the line: it may be a secret. */
function addIdentity(decrypter: age.Decrypter, line: string, file: string): void {
  try {
    decrypter.addIdentity(line);
  } catch (cause) {
    throw new RepriseError(
      "BAD_OPTIONS",
      `--identity: ${file} has a line that is not an age identity. Expected AGE-SECRET-KEY-1…, as \`age-keygen\` prints it.`,
      { cause },
    );
  }
}
