// Store URLs: `sqlite:path`, `sqlite::memory:`.

import { RepriseError } from "../base/index.ts";
import { sqlite, type StoreSource } from "../stores/index.ts";

const EXAMPLES = "\"sqlite:shop.db\", \"sqlite:/var/lib/shop.db\" or \"sqlite::memory:\"";

/** What a URL names, checked before anything is opened or created. */
export function storeOf(store: unknown): StoreSource {
  if (typeof store === "object" && store !== null && "~open" in store) return store as StoreSource;
  if (typeof store !== "string")
    throw new RepriseError("BAD_STORE_URL", `Expected a store such as ${EXAMPLES}, got ${typeof store}.`);
  const path = /^sqlite:(?<path>.+)$/su.exec(store)?.groups?.["path"];
  if (path === undefined || path.includes("\0"))
    throw new RepriseError("BAD_STORE_URL", `Expected a store such as ${EXAMPLES}, got ${JSON.stringify(store)}.`);
  return sqlite(path.startsWith("//") ? decodeURIComponent(path.slice(2)) : path);
}
