// Address: what a URL says about the server and the database in it.

import { passwordHint, RepriseError, withoutPassword } from "../../base/index.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** A socket of this machine, instead of host and port. */
  readonly socket: string | undefined;
  /** `verify`: encrypted, and the server shows whom it is; `encrypt`: encrypted only. */
  readonly tls: "off" | "encrypt" | "verify";
  /** For people: no password. */
  readonly location: string;
}

const EXAMPLE = '"mysql://user:password@host:3306/database"';
const PORT = 3306;
const TLS = { off: "off", encrypt: "encrypt", verify: "verify" } as const;

export function addressOf(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const database = url === undefined ? "" : decoded(url.pathname.slice(1));
  if (url === undefined || (url.protocol !== "mysql:" && url.protocol !== "mariadb:") || !/^[^/\0`]+$/.test(database))
    throw new RepriseError(
      "BAD_STORE_URL",
      `mysql: expected a URL such as ${EXAMPLE}, got ${JSON.stringify(withoutPassword(text))}.${passwordHint(text)}`,
    );
  for (const name of url.searchParams.keys())
    if (name !== "socket" && name !== "tls")
      throw new RepriseError("BAD_STORE_URL", `mysql: expected ?tls= or ?socket= or nothing, got ?${name}=.`);
  const tls = url.searchParams.get("tls") ?? "off";
  if (!Object.hasOwn(TLS, tls))
    throw new RepriseError("BAD_STORE_URL", `mysql: expected ?tls=off, encrypt or verify, got ?tls=${tls}.`);
  const port = url.port === "" ? PORT : Number(url.port);
  const user = decoded(url.username);
  const socket = url.searchParams.get("socket") ?? undefined;
  const place = socket ?? `${url.hostname || "localhost"}${port === PORT ? "" : `:${port}`}`;
  return {
    // In brackets in a URL, without them everywhere else.
    host: url.hostname.replaceAll(/^\[|\]$/g, "") || "localhost",
    port,
    user,
    password: decoded(url.password),
    database,
    socket,
    tls: TLS[tls as keyof typeof TLS],
    location: `mysql://${user === "" ? "" : `${user}@`}${place}/${database}`,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
