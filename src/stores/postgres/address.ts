// Address: what a URL says about the server and the place of our tables in it.

import { passwordHint, RepriseError, withoutPassword } from "../../base/index.ts";

export interface Address {
  /** For the driver: without what is ours. */
  readonly url: string;
  readonly schema: string;
  /** Whether a pooler that keeps a session's connection stands in between. */
  readonly isPooled: boolean;
  /** For people: no password. */
  readonly location: string;
}

const DEFAULT_SCHEMA = "reprise";
const EXAMPLE = '"postgres://user:password@host:5432/database"';
/** Short enough for the names of channels made from it. */
const SCHEMA_NAME = /^(?!pg_)[a-z_][a-z0-9_]{0,39}$/;
const NOT_OURS = new Set(["public", "information_schema"]);

export function addressOf(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "postgres:" && url.protocol !== "postgresql:"))
    throw new RepriseError(
      "BAD_STORE_URL",
      `postgres: expected a URL such as ${EXAMPLE}, got ${JSON.stringify(withoutPassword(text))}.${passwordHint(text)}`,
    );
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  if (!SCHEMA_NAME.test(schema) || NOT_OURS.has(schema))
    throw new RepriseError(
      "BAD_STORE_URL",
      `postgres: expected the name of a schema of Reprise's own (lower case letters, digits, _; at most 40), got ?schema=${schema}.`,
    );
  const pooler = url.searchParams.get("pooler");
  if (pooler !== null && pooler !== "session")
    throw new RepriseError("BAD_STORE_URL", `postgres: expected ?pooler=session or none, got ?pooler=${pooler}.`);
  url.searchParams.delete("schema");
  url.searchParams.delete("pooler");
  return { url: url.href, schema, isPooled: pooler !== null, location: locationOf(url, schema) };
}

function locationOf(url: URL, schema: string): string {
  const shown = new URL(url.href);
  shown.password = "";
  shown.search = "";
  const database =
    url.searchParams.get("host") === null ? shown.href : `${shown.href} at ${url.searchParams.get("host")}`;
  return schema === DEFAULT_SCHEMA ? database : `${database}?schema=${schema}`;
}
