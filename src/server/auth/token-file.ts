// Token file: tokens that `reprise token` creates and revokes while servers run.
//
// token-file.K1. A server looks at the file's fingerprint with every request, and reads it again when it changed: a revoked token is
//   refused with the next request, without a restart.
// token-file.K2. A file that is missing, damaged or readable by others has no tokens: a server never continues with tokens that an operator
//   may have meant to revoke, and never becomes open because its file is gone.
// token-file.K3. A change fails if another process replaced the file meanwhile, so that no token comes back to life.

import { RepriseError, type Random } from "../../base/index.ts";
import { checkTokens, type KnownToken, type TokenSettings } from "./api-token.ts";
import { fingerprintOf, readPrivateFile, replacePrivateFile } from "./private-file.ts";

/** The tokens of a file, read again when it changes. */
export class TokenFile {
  readonly #file: string;
  readonly #onError: (error: unknown) => void;
  #fingerprint: string | undefined;
  #tokens: readonly KnownToken[] = [];

  constructor(file: string, onError: (error: unknown) => void) {
    this.#file = file;
    this.#onError = onError;
  }

  /** token-file.K1 */
  tokens(): readonly KnownToken[] {
    const fingerprint = fingerprintOf(this.#file);
    if (fingerprint === this.#fingerprint) return this.#tokens;
    this.#fingerprint = fingerprint;
    try {
      this.#tokens = checkTokens(readTokenFile(this.#file), `${this.#file}: tokens`);
    } catch (error) {
      // token-file.K2
      this.#tokens = [];
      this.#onError(error);
    }
    return this.#tokens;
  }
}

/** The tokens as the file has them; without a file there are none. */
export function readTokenFile(file: string): readonly TokenSettings[] {
  const text = readPrivateFile(file);
  if (text === undefined) return [];
  const { tokens } = parse(file, text);
  checkTokens(tokens, `${file}: tokens`);
  return tokens as readonly TokenSettings[];
}

function parse(file: string, text: string): { readonly tokens?: unknown } {
  try {
    const parsed = JSON.parse(text) as unknown;
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {
    // Not with the parser's message: it quotes the text.
  }
  throw new RepriseError("BAD_FORMAT", `${file}: expected JSON such as {"tokens":[]}. Restore it, or delete it.`);
}

/** token-file.K3 */
export function changeTokenFile(
  file: string,
  random: Random,
  change: (tokens: readonly TokenSettings[]) => readonly TokenSettings[],
): void {
  const before = fingerprintOf(file);
  const tokens = change(readTokenFile(file));
  checkTokens(tokens, `${file}: tokens`);
  const text = `${JSON.stringify({ tokens }, undefined, 2)}\n`;
  if (fingerprintOf(file) !== before)
    throw new RepriseError("USAGE", `${file} was changed by another process just now. Repeat the command.`);
  replacePrivateFile(file, text, random);
}
