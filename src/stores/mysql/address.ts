// Address: parses a MySQL or MariaDB store URL: the servers and the database.

import { passwordHint, RepriseError, withoutPassword } from "../../base/index.ts";
import { Hosts, splitHosts } from "../remote/hosts.ts";
import { TLS_FILES, tlsOf, type Tls, type TlsMode } from "../remote/tls.ts";
import { connectMsOf, oneOf, refuseUnknownOptions } from "../remote/url-options.ts";

export interface Host {
  readonly name: string;
  readonly port: number;
}

export interface Address {
  readonly hosts: Hosts<Host>;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** A local socket, instead of host and port. */
  readonly socket: string | undefined;
  readonly tls: Tls | undefined;
  readonly connectMs: number | undefined;
  /** Without the password, for messages. */
  readonly location: string;
}

const EXAMPLE = '"mysql://user:password@host:3306/database"';
const PORT = 3306;
const OPTIONS = ["tls", "socket", "connect_timeout", ...TLS_FILES] as const;
/** `verify`: encrypts and verifies the server's certificate; `encrypt`: encrypts only. */
const MODES: Readonly<Record<"off" | "encrypt" | "verify", TlsMode>> = {
  off: "disable",
  encrypt: "require",
  verify: "verify-full",
};

export function addressOf(text: string): Address {
  const urls = splitHosts(text).flatMap((each) => (URL.canParse(each) ? [new URL(each)] : []));
  const [first] = urls;
  const database = first === undefined ? "" : decoded(first.pathname.slice(1));
  const isWhole = urls.length === splitHosts(text).length && urls.every(isMysql);
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_STORE_URL", `mysql: ${problem}`);
  };
  if (first === undefined || !isWhole || !/^[^/\0`]+$/.test(database))
    return refuse(
      `expected a URL such as ${EXAMPLE}, got ${JSON.stringify(withoutPassword(text))}.${passwordHint(splitHosts(text)[0]!)}`,
    );
  const options = first.searchParams;
  refuseUnknownOptions("mysql", options, OPTIONS);
  const socket = options.get("socket") ?? undefined;
  if (urls.length > 1 && socket !== undefined)
    refuse("?socket= cannot be used with several hosts. Remove it, or use one host.");
  if (urls.length > 1 && urls.some(({ hostname }) => hostname === ""))
    refuse("the list of hosts has an empty entry. Write it as in mysql://a:3306,b:3306/database.");
  const mode = oneOf("mysql", options, "tls", ["off", "encrypt", "verify"]);
  return {
    hosts: new Hosts(urls.map(hostOf), ({ name, port }) => `${name}:${port}`),
    user: decoded(first.username),
    password: decoded(first.password),
    database,
    socket,
    tls: tlsOf("mysql", options, mode === undefined ? undefined : MODES[mode], `tls=${mode}`),
    connectMs: connectMsOf("mysql", options),
    location: locationOf(urls, socket, database),
  };
}

function isMysql(url: URL): boolean {
  return url.protocol === "mysql:" || url.protocol === "mariadb:";
}

function hostOf(url: URL): Host {
  return {
    // An IPv6 address has brackets only in a URL.
    name: url.hostname.replaceAll(/^\[|\]$/g, "") || "localhost",
    port: url.port === "" ? PORT : Number(url.port),
  };
}

function locationOf(urls: readonly URL[], socket: string | undefined, database: string): string {
  const places = urls.map(({ hostname, port }) => {
    const isUsual = port === "" || Number(port) === PORT;
    return `${hostname || "localhost"}${isUsual ? "" : `:${port}`}`;
  });
  const user = decoded(urls[0]!.username);
  return `mysql://${user === "" ? "" : `${user}@`}${socket ?? places.join()}/${database}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
