// What a URL names, for workers, clients and checkers.

import type { StoreSource } from "reprise";
import { storeOf } from "../../src/engine/store-url.ts";
import { openMysqlBackend } from "../../src/stores/mysql/backend.ts";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";

export function sourceFor(url: string): StoreSource {
  if (url.startsWith("sqlite:")) return storeOf(url);
  return {
    "~open": async (options) => {
      const { random, timers, durability } = options;
      const parts = { url, random, timers, durability };
      const backend = url.startsWith("mysql:") ? await openMysqlBackend(parts) : await openPostgresBackend(parts);
      return openRemoteStore(backend, options);
    },
  };
}
