// Address: parses a PostgreSQL store URL: the servers, the database and the schema.

import { passwordHint, RepriseError, withoutPassword } from "../../base/index.ts";
import { Hosts, joinHosts, splitHosts } from "../remote/hosts.ts";
import { TLS_FILES, TLS_MODES, tlsOf, type Tls } from "../remote/tls.ts";
import { connectMsOf, oneOf, refuseUnknownOptions } from "../remote/url-options.ts";

export interface Address {
  /** One URL per host, for the driver, without Reprise's own options. */
  readonly hosts: Hosts<string>;
  /** Undefined: the driver uses its environment (PGSSLMODE). */
  readonly tls: Tls | undefined;
  /** `read-write`: servers that refuse writes by default are skipped, too. */
  readonly target: "read-write" | "primary";
  readonly connectMs: number | undefined;
  readonly schema: string;
  /** Whether connections go through a pooler in session mode. */
  readonly isPooled: boolean;
  /** Without the password, for messages. */
  readonly location: string;
}

const DEFAULT_SCHEMA = "reprise";
const EXAMPLE = '"postgres://user:password@host:5432/database"';
/** Short enough for the names of notification channels derived from it. */
const SCHEMA_NAME = /^(?!pg_)[a-z_][a-z0-9_]{0,39}$/;
const RESERVED_SCHEMAS = new Set(["public", "information_schema"]);
const TARGETS = ["read-write", "primary", "any"] as const;
const REPRISE_OPTIONS = [
  "schema",
  "pooler",
  "target_session_attrs",
  "connect_timeout",
  "sslmode",
  ...TLS_FILES,
] as const;
/** Options of the driver, with libpq's names. */
const DRIVER_OPTIONS = ["host", "port", "user", "password", "options"] as const;

export function addressOf(text: string): Address {
  const urls = splitHosts(text).map((each) => (URL.canParse(each) ? new URL(each) : undefined));
  const [first] = urls;
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_STORE_URL", `postgres: ${problem}`);
  };
  if (first === undefined || !urls.every((url) => url !== undefined && isPostgres(url)))
    return refuse(
      `expected a URL such as ${EXAMPLE}, got ${JSON.stringify(withoutPassword(text))}.${passwordHint(splitHosts(text)[0]!)}`,
    );
  const options = first.searchParams;
  refuseUnknownOptions("postgres", options, [...REPRISE_OPTIONS, ...DRIVER_OPTIONS]);
  const schema = options.get("schema") ?? DEFAULT_SCHEMA;
  if (!SCHEMA_NAME.test(schema) || RESERVED_SCHEMAS.has(schema))
    refuse(
      `?schema=${schema} cannot be used. Name a schema for Reprise alone: at most 40 lower-case letters, digits and _, not public or pg_….`,
    );
  const isPooled = oneOf("postgres", options, "pooler", ["session"]) !== undefined;
  const target = oneOf("postgres", options, "target_session_attrs", TARGETS) ?? "read-write";
  if (urls.length > 1) checkHosts(urls as readonly URL[], target, refuse);
  const mode = oneOf("postgres", options, "sslmode", TLS_MODES);
  const tls = tlsOf("postgres", options, mode, `sslmode=${mode}`);
  const connectMs = connectMsOf("postgres", options);
  for (const url of urls) for (const name of REPRISE_OPTIONS) url!.searchParams.delete(name);
  const hosts = new Hosts(
    urls.map((url) => url!.href),
    (url) => new URL(url).host,
  );
  const location = locationOf(urls as readonly URL[], schema);
  return { hosts, tls, target: target === "any" ? "primary" : target, connectMs, schema, isPooled, location };
}

function isPostgres(url: URL): boolean {
  return url.protocol === "postgres:" || url.protocol === "postgresql:";
}

function checkHosts(urls: readonly URL[], target: string, refuse: (problem: string) => never): void {
  if (target === "any")
    refuse(
      "target_session_attrs=any could choose a read-only standby. Use target_session_attrs=read-write or primary.",
    );
  if (urls.some(({ hostname }) => hostname === ""))
    refuse("the list of hosts has an empty entry. Write it as in postgres://a:5432,b:5432/database.");
  const named = ["host", "port"].find((name) => urls[0]!.searchParams.has(name));
  if (named !== undefined)
    refuse(
      `?${named}= cannot be used with several hosts. Write each host with its port: postgres://a:5432,b:5432/database.`,
    );
}

function locationOf(urls: readonly URL[], schema: string): string {
  const shown = urls.map((url) => {
    const each = new URL(url.href);
    each.password = "";
    each.search = "";
    return each;
  });
  const socket = urls[0]!.searchParams.get("host");
  const database = socket === null ? joinHosts(shown) : `${joinHosts(shown)} at ${socket}`;
  return schema === DEFAULT_SCHEMA ? database : `${database}?schema=${schema}`;
}
