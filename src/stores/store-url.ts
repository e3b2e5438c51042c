// Store URLs: `sqlite:path`, `sqlite::memory:`, `postgres://…`, `mysql://…`.
//
// A URL may hold a password: it is never shown as it is.

import { RepriseError, withoutPassword } from "../base/index.ts";
import { mysql } from "./mysql/source.ts";
import { postgres } from "./postgres/source.ts";
import { splitHosts, withEachHost } from "./remote/hosts.ts";
import { sqlite, type StoreSource } from "./source.ts";

const EXAMPLES =
  '"sqlite:shop.db", "sqlite::memory:", "postgres://user:password@host/shop" or "mysql://user:password@host/shop"';

/** By the scheme of the URL. */
const SERVERS: ReadonlyMap<string, (url: string) => StoreSource> = new Map<string, (url: string) => StoreSource>([
  ["postgres:", postgres],
  ["postgresql:", postgres],
  ["mysql:", mysql],
  ["mariadb:", mysql],
]);

/** What a URL names, checked before anything is opened or created. */
export function storeOf(store: unknown): StoreSource {
  if (typeof store === "object" && store !== null && "~open" in store) return store as StoreSource;
  return typeof store === "string" && isServer(store)
    ? SERVERS.get(schemeOf(store))!(store)
    : sqlite(sqlitePathOf(store));
}

/** Whether it names a database server, not a file. */
export function isServer(store: string): boolean {
  return SERVERS.has(schemeOf(store));
}

function schemeOf(store: string): string {
  return /^[a-z]+:/.exec(store)?.[0] ?? "";
}

/** For people: without the password. */
export function shownUrl(store: string): string {
  if (!isServer(store)) return store;
  if (!splitHosts(store).every((each) => URL.canParse(each))) return `${schemeOf(store)}//…`;
  return withEachHost(store, (url) => (url.password = ""));
}

/** The file a URL names, or `:memory:`. */
export function sqlitePathOf(store: unknown): string {
  if (typeof store !== "string")
    throw new RepriseError("BAD_STORE_URL", `Expected a store such as ${EXAMPLES}, got ${typeof store}.`);
  const path = unescaped(/^sqlite:(?<path>.+)$/su.exec(store)?.groups?.["path"]);
  if (path === undefined || path === "" || path.includes("\0"))
    throw new RepriseError(
      "BAD_STORE_URL",
      `Expected a store such as ${EXAMPLES}, got ${JSON.stringify(withoutPassword(store))}.${suggestion(store)}`,
    );
  const options = /\?.*$/s.exec(store)?.[0];
  if (options !== undefined)
    throw new RepriseError(
      "BAD_STORE_URL",
      `sqlite: expected a URL without options, got ${JSON.stringify(options)}. Remove it; if the file's name has a question mark, write sqlite:// and %3F for it.`,
      { details: { options } },
    );
  return path;
}

/** A path alone: the scheme is what is missing. */
function suggestion(store: string): string {
  return /^[^:\0]+$/.test(store) ? ` Did you mean ${JSON.stringify(`sqlite:${store}`)}?` : "";
}

/** After `//` a path is written as in a URL; undefined when its escapes are broken. */
function unescaped(path: string | undefined): string | undefined {
  if (path === undefined || !path.startsWith("//")) return path;
  try {
    return decodeURIComponent(path.slice(2));
  } catch {
    return undefined;
  }
}
