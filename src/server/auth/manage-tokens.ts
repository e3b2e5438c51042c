// Manage tokens: creating, listing and revoking the tokens of a file, for `reprise token` and for code.

import { RepriseError, systemClock, systemRandom, toMs, type Duration } from "../../base/index.ts";
import { createToken, type TokenSettings } from "./api-token.ts";
import { changeTokenFile, readTokenFile } from "./token-file.ts";

/** What a new token allows. */
export interface NewTokenOptions extends Pick<TokenSettings, "definitions" | "name" | "queues" | "role" | "tags"> {
  /** After which time it expires: `"90 days"`. Default: never. */
  expires?: Duration;
}

/** A token that was created. `token` is not kept anywhere. */
export interface NewToken {
  readonly token: string;
  readonly settings: TokenSettings;
}

/**
 * Creates a token in a file that servers read (`auth.tokenFile`), and returns it: it is never shown again.
 *
 * @example
 * ```ts
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { addToken } from "reprise/server";
 * const file = join(mkdtempSync(join(tmpdir(), "example-")), "tokens.json");
 * const { token } = addToken(file, { name: "ci", role: "operator", expires: "90 days" });
 * console.log(token.startsWith("rp_")); // prints: true
 * ```
 */
export function addToken(file: string, options: NewTokenOptions): NewToken {
  const { expires, ...rest } = options;
  const now = systemClock.now();
  const { token, id, hash } = createToken(systemRandom);
  const settings: TokenSettings = {
    ...rest,
    hash,
    id,
    createdAt: new Date(now).toISOString(),
    ...(expires !== undefined && { expiresAt: new Date(now + toMs(expires, "expires")).toISOString() }),
  };
  changeTokenFile(file, systemRandom, (tokens) => {
    if (tokens.some(({ name }) => name === settings.name))
      throw new RepriseError(
        "USAGE",
        `There is a token ${settings.name} in ${file} already. Choose another name, or revoke it first: \`reprise token revoke ${settings.name}\`.`,
      );
    return [...tokens, settings];
  });
  return { token, settings };
}

/**
 * The tokens of a file, without the tokens themselves.
 *
 * @example
 * ```ts
 * import { listTokens } from "reprise/server";
 * for (const { name, role } of listTokens(".reprise/tokens.json")) console.log(name, role);
 * ```
 */
export function listTokens(file: string): readonly TokenSettings[] {
  return readTokenFile(file);
}

/**
 * Removes a token from a file: running servers refuse it from the next request on. False: there is none of this name.
 *
 * @example
 * ```ts
 * import { revokeToken } from "reprise/server";
 * console.log(revokeToken(".reprise/tokens.json", "ci")); // prints: false
 * ```
 */
export function revokeToken(file: string, name: string): boolean {
  if (!readTokenFile(file).some((one) => one.name === name)) return false;
  changeTokenFile(file, systemRandom, (tokens) => tokens.filter((one) => one.name !== name));
  return true;
}
