// TLS: the TLS options of a URL, and their errors. TLS errors are never retried: a server without TLS, or with an untrusted
// certificate, will not change within seconds.

import { readFileSync } from "node:fs";
import { RepriseError } from "../../base/index.ts";

/** As in libpq. `require` encrypts only, unless a root certificate is given: then it is `verify-ca`. */
export type TlsMode = "disable" | "prefer" | "require" | "verify-ca" | "verify-full";

export const TLS_MODES: readonly TlsMode[] = ["disable", "prefer", "require", "verify-ca", "verify-full"];
export const TLS_FILES = ["sslrootcert", "sslcert", "sslkey"] as const;

export interface Tls {
  readonly mode: TlsMode;
  /** The option as written in the URL, for messages. */
  readonly option: string;
  readonly files: Readonly<Partial<Record<(typeof TLS_FILES)[number], string>>>;
}

/** The TLS options of a URL; undefined when it has none. */
export function tlsOf(
  driver: string,
  options: URLSearchParams,
  mode: TlsMode | undefined,
  option: string,
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
      ? { mode: "disable", option, files }
      : refuse(
          `the URL has ${named[0]![0]}, but TLS is off. Add ${driver === "mysql" ? "tls=verify" : "sslmode=verify-full"}, or remove ${named[0]![0]}.`,
        );
  if ((files.sslcert === undefined) !== (files.sslkey === undefined))
    refuse("a client certificate needs two files. Add both sslcert=/path/client.pem and sslkey=/path/client.key.");
  if (mode === "verify-ca" && files.sslrootcert === undefined)
    refuse(
      "sslmode=verify-ca needs the certificate of your CA. Add sslrootcert=/path/ca.pem; for a public CA use sslmode=verify-full, which also checks the host name.",
    );
  const isTrusted = mode === "require" && files.sslrootcert !== undefined;
  return { mode: isTrusted ? "verify-ca" : mode, option, files };
}

/** The options of both drivers. */
interface TlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized: boolean;
  readonly checkServerIdentity?: () => undefined;
}

/** The driver's options; `false` for no TLS. */
export function tlsOptions(driver: string, { mode, files }: Tls): TlsOptions | false {
  if (mode === "disable") return false;
  const { sslrootcert, sslcert, sslkey } = files;
  return {
    // "system": the CAs that Node trusts.
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
    throw new RepriseError(
      "BAD_STORE_URL",
      `${driver}: cannot read the file of ${option}=${path} (${code}). Correct the path or the file's permissions.`,
      {
        cause: error,
      },
    );
  }
}

export function noTlsOffered(location: string, { option }: Tls): RepriseError {
  return new RepriseError(
    "STORE_IO",
    `${location} does not offer TLS, but the URL has ${option}. Enable TLS on the server, or remove ${option} from the URL if you trust the network.`,
    { details: { tls: "not offered" } },
  );
}

const WRONG_NAME = new Set(["ERR_TLS_CERT_ALTNAME_INVALID", "HOSTNAME_MISMATCH"]);
const WRONG_TIME = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
/** Node's names for OpenSSL's certificate errors. */
const UNTRUSTED =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*|CERT_.*|INVALID_.*|PATH_LENGTH_EXCEEDED)$/;
const HANDSHAKE = /^ERR_(?:TLS|SSL|OSSL)_/;

/** The error to throw for a TLS failure; undefined for other errors. */
export function tlsErrorOf(error: unknown, location: string, tls: Tls | undefined): RepriseError | undefined {
  if (tls === undefined || !(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== "string") return undefined;
  const problem = problemOf(code, error.message.replace(/\.$/, ""), tls.option);
  if (problem === undefined) return undefined;
  return new RepriseError("STORE_IO", `${location}: ${problem}`, { cause: error, details: { tls: code } });
}

function problemOf(code: string, text: string, option: string): string | undefined {
  if (WRONG_NAME.has(code))
    return `the server's certificate is for another host name (${text}), and the URL has ${option}. Use the certificate's host name in the URL, or install a certificate for this host.`;
  if (WRONG_TIME.has(code))
    return `the server's certificate has expired or is not valid yet (${text}), and the URL has ${option}. Renew the certificate, and check this machine's clock.`;
  if (UNTRUSTED.test(code))
    return `the server's certificate is not trusted (${text}), and the URL has ${option}. Add the certificate of its CA: sslrootcert=/path/ca.pem.`;
  if (HANDSHAKE.test(code))
    return `the TLS handshake failed (${text}). Check the certificates and the TLS versions of the client and the server.`;
  return undefined;
}
