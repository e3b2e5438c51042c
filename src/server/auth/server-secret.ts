// Server secret: what the server signs its own tokens with: sessions, browser tokens and approval links.
//
// server-secret.S1. Each use has a key of its own, derived from the secret: a signature made for one use never verifies for another.
// server-secret.S2. The secret comes from the options, from a file with the mode 0600 that is created with the first use, or is random: then
//   everything that was signed ends with the process.

import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { RepriseError, type Random } from "../../base/index.ts";
import { createPrivateFile, readPrivateFile } from "./private-file.ts";

/** What a signature is for. */
export type Purpose = "approval-link" | "browser-token" | "callback" | "session";

const SECRET_BYTES = 32;
/** Below this, a secret can be guessed. */
const MIN_CHARACTERS = 32;

/** Signs small values, and reads what it signed. */
export class ServerSecret {
  readonly #bytes: Uint8Array;
  readonly #keys = new Map<string, Buffer>();

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** server-secret.S1. `<value in base64url>.<256 bits in base64url>`: anyone can read the value, only the server can make it. */
  sign(purpose: Purpose, value: unknown): string {
    const body = Buffer.from(JSON.stringify(value)).toString("base64url");
    return `${body}.${this.#mac(purpose, body).toString("base64url")}`;
  }

  /** The signed value; undefined: this server did not sign it for this purpose. */
  verify(purpose: Purpose, signed: string): unknown {
    const [, body, mac] = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/.exec(signed) ?? [];
    if (body === undefined || mac === undefined) return undefined;
    if (!timingSafeEqual(Buffer.from(mac, "base64url"), this.#mac(purpose, body))) return undefined;
    return JSON.parse(Buffer.from(body, "base64url").toString("utf8")) as unknown;
  }

  /** A name for this secret that says nothing about it. */
  fingerprint(): string {
    return createHmac("sha256", this.#keyFor("fingerprint")).digest("hex").slice(0, 8);
  }

  #mac(purpose: Purpose, body: string): Buffer {
    return createHmac("sha256", this.#keyFor(purpose)).update(body).digest();
  }

  #keyFor(purpose: string): Buffer {
    let key = this.#keys.get(purpose);
    if (key === undefined) {
      key = Buffer.from(hkdfSync("sha256", this.#bytes, "", `reprise/server/${purpose}/v1`, SECRET_BYTES));
      this.#keys.set(purpose, key);
    }
    return key;
  }
}

/** A secret that an option gives. */
export function secretOf(text: unknown, what: string): ServerSecret {
  if (typeof text !== "string" || text.length < MIN_CHARACTERS)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected at least ${MIN_CHARACTERS} random characters. \`openssl rand -base64 32\` makes them.`,
    );
  return new ServerSecret(Buffer.from(text, "utf8"));
}

export function randomSecret(random: Random): ServerSecret {
  return new ServerSecret(random.bytes(SECRET_BYTES));
}

/** server-secret.S2. Two processes that create the file at the same time use the same secret. */
export function secretInFile(file: string, random: Random): ServerSecret {
  let text = readPrivateFile(file);
  if (text === undefined) {
    createPrivateFile(file, `${Buffer.from(random.bytes(SECRET_BYTES)).toString("base64url")}\n`, random);
    text = readPrivateFile(file);
  }
  return secretOf(text?.trim(), file);
}
