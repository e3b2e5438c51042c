// TLS: what a URL asks for, and what went wrong, said at once. A server that offers no TLS, or shows a certificate that is
// not trusted, will not do better in a second: nothing here is ever retried.

import { readFileSync } from "node:fs";
import { RepriseError } from "../../base/index.ts";

/** As in libpq. `require` encrypts only, unless a root certificate is given: then it is `verify-ca`. */
export type TlsMode = "disable" | "prefer" | "require" | "verify-ca" | "verify-full";

export const TLS_MODES: readonly TlsMode[] = ["disable", "prefer", "require", "verify-ca", "verify-full"];
export const TLS_FILES = ["sslrootcert", "sslcert", "sslkey"] as const;

export interface Tls {
  readonly mode: TlsMode;
  /** As it is written in the URL, for messages. */
  readonly asked: string;
  readonly files: Readonly<Partial<Record<(typeof TLS_FILES)[number], string>>>;
}

/** What the URL's options say; undefined when they say nothing. */
export function tlsOf(
  driver: string,
  options: URLSearchParams,
  mode: TlsMode | undefined,
  asked: string,
): Tls | undefined {
  const named = TLS_FILES.flatMap((name) => {
    const path = options.get(name);
    return path === null ? [] : [[name, path] as const];
  });
  if (mode === undefined && named.length === 0) return undefined;
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_STORE_URL", `${driver}: ${problem}`);
  };
  const files = Object.fromEntries(named) as Tls["files"];
  if (mode === undefined || mode === "disable")
    return named.length === 0
      ? { mode: "disable", asked, files }
      : refuse(`the URL has ${named[0]![0]}, but does not ask for TLS. Add sslmode=verify-full, or remove it.`);
  if ((files.sslcert === undefined) !== (files.sslkey === undefined))
    refuse("a client certificate is two files: name both sslcert and sslkey.");
  if (mode === "verify-ca" && files.sslrootcert === undefined)
    refuse(
      "sslmode=verify-ca needs the certificate of your CA: add sslrootcert=/path/ca.pem. For a public CA write sslmode=verify-full, which checks the host's name as well.",
    );
  const isTrusted = mode === "require" && files.sslrootcert !== undefined;
  return { mode: isTrusted ? "verify-ca" : mode, asked, files };
}

/** As drivers take it. */
interface TlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized: boolean;
  readonly checkServerIdentity?: () => undefined;
}

/** For the driver; `false` for no TLS at all. */
export function tlsOptions(driver: string, { mode, files }: Tls): TlsOptions | false {
  if (mode === "disable") return false;
  const { sslrootcert, sslcert, sslkey } = files;
  return {
    // "system": what Node trusts.
    ...(sslrootcert !== undefined && sslrootcert !== "system" && { ca: fileOf(driver, "sslrootcert", sslrootcert) }),
    ...(sslcert !== undefined && { cert: fileOf(driver, "sslcert", sslcert) }),
    ...(sslkey !== undefined && { key: fileOf(driver, "sslkey", sslkey) }),
    rejectUnauthorized: mode === "verify-ca" || mode === "verify-full",
    ...(mode === "verify-ca" && { checkServerIdentity: () => undefined }),
  };
}

function fileOf(driver: string, option: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new RepriseError("BAD_STORE_URL", `${driver}: cannot read ${option}=${path} (${code}). Correct the path.`, {
      cause: error,
    });
  }
}

export function noTlsOffered(location: string, { asked }: Tls): RepriseError {
  return new RepriseError(
    "STORE_IO",
    `${location} does not offer TLS, and the URL asks for ${asked}. Turn TLS on at the server, or remove ${asked} where the network can be trusted.`,
    { details: { tls: "not offered" } },
  );
}

const WRONG_NAME = new Set(["ERR_TLS_CERT_ALTNAME_INVALID", "HOSTNAME_MISMATCH"]);
const WRONG_TIME = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
/** The names that Node gives to what OpenSSL finds wrong with a certificate. */
const UNTRUSTED =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*|CERT_.*|INVALID_.*|PATH_LENGTH_EXCEEDED)$/;
const HANDSHAKE = /^ERR_(?:TLS|SSL|OSSL)_/;

/** The error to throw at once for what went wrong with TLS; undefined for everything else. */
export function tlsErrorOf(error: unknown, location: string, tls: Tls | undefined): RepriseError | undefined {
  if (tls === undefined || !(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== "string") return undefined;
  const problem = problemOf(code, error.message.replace(/\.$/, ""), tls.asked);
  if (problem === undefined) return undefined;
  return new RepriseError("STORE_IO", `${location}: ${problem}`, { cause: error, details: { tls: code } });
}

function problemOf(code: string, text: string, asked: string): string | undefined {
  if (WRONG_NAME.has(code))
    return `the server's certificate is for another name (${text}), and the URL asks for ${asked}. Write the host as the certificate names it, or give the server a certificate for this name.`;
  if (WRONG_TIME.has(code))
    return `the server's certificate is out of date (${text}), and the URL asks for ${asked}. Renew the certificate.`;
  if (UNTRUSTED.test(code))
    return `the server's certificate is not trusted (${text}), and the URL asks for ${asked}. Name the certificate of its CA: add sslrootcert=/path/ca.pem.`;
  if (HANDSHAKE.test(code))
    return `the TLS handshake failed (${text}). Check the certificates and the TLS versions of both sides.`;
  return undefined;
}
