// Store URLs: `sqlite:path`, `sqlite::memory:`, `postgres://…`, `mysql://…`.
//
// A URL may hold a password: every message shows it without the password.

import { RepriseError, withoutPassword } from "../base/index.ts";
import { mysql } from "./mysql/source.ts";
import { postgres } from "./postgres/source.ts";
import { splitHosts, withEachHost } from "./remote/hosts.ts";
import { sqlite, type StoreSource } from "./store-source.ts";

const EXAMPLES =
  '"sqlite:shop.db", "sqlite::memory:", "postgres://user:password@host/shop" or "mysql://user:password@host/shop"';

/** The only option of a `sqlite:` URL: create the folder of the file. */
const MKDIR = "?mkdir=1";

/** By the scheme of the URL. */
const SERVERS: ReadonlyMap<string, (url: string) => StoreSource> = new Map<string, (url: string) => StoreSource>([
  ["postgres:", postgres],
  ["postgresql:", postgres],
  ["mysql:", mysql],
  ["mariadb:", mysql],
]);

/** The store of a URL. Checks the URL before anything is opened or created. */
export function storeOf(store: unknown): StoreSource {
  if (typeof store === "object" && store !== null && "~open" in store) return store as StoreSource;
  return typeof store === "string" && isServer(store)
    ? SERVERS.get(schemeOf(store))!(store)
    : sqlite(sqlitePathOf(store), { mkdir: typeof store === "string" && store.endsWith(MKDIR) });
}

/** Whether the URL names a database server, not a file. */
export function isServer(store: string): boolean {
  return SERVERS.has(schemeOf(store));
}

function schemeOf(store: string): string {
  return /^[a-z]+:/.exec(store)?.[0] ?? "";
}

/** The URL without its password. */
export function shownUrl(store: string): string {
  if (!isServer(store)) return store;
  if (!splitHosts(store).every((each) => URL.canParse(each))) return `${schemeOf(store)}//…`;
  return withEachHost(store, (url) => (url.password = ""));
}

/** The file a URL names, or `:memory:`. */
export function sqlitePathOf(store: unknown): string {
  if (typeof store !== "string")
    throw new RepriseError(
      "BAD_STORE_URL",
      `The store is a value of type ${typeof store}, not a URL or a store source. Use a store such as ${EXAMPLES}.`,
    );
  const options = /\?.*$/s.exec(store)?.[0] ?? "";
  const path = unescaped(/^sqlite:(?<path>[^?]+)/su.exec(store)?.groups?.["path"]);
  if (path === undefined || path === "" || path.includes("\0"))
    throw new RepriseError(
      "BAD_STORE_URL",
      `${JSON.stringify(withoutPassword(store))} is not a store URL.${suggestion(store)} Use a store such as ${EXAMPLES}.`,
    );
  if (options !== "" && options !== MKDIR)
    throw new RepriseError(
      "BAD_STORE_URL",
      `The only option of a sqlite: URL is ${MKDIR}, and this one has ${JSON.stringify(options)}. Remove it. If the name of the file holds a question mark, start the URL with sqlite:// and write %3F.`,
      { details: { options } },
    );
  return path;
}

/** For a path without a scheme. */
function suggestion(store: string): string {
  return /^[^:\0]+$/.test(store) ? ` Did you mean ${JSON.stringify(`sqlite:${store}`)}?` : "";
}

/** A path after `//` is percent-encoded. Undefined when its escapes are invalid. */
function unescaped(path: string | undefined): string | undefined {
  if (path === undefined || !path.startsWith("//")) return path;
  try {
    return decodeURIComponent(path.slice(2));
  } catch {
    return undefined;
  }
}
