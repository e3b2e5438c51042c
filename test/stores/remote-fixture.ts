// Remote fixture: a remote store on a simulated in-memory database, and user SQL for the store cases.

import type { StoreSource } from "../../src/stores/index.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import { openSimBackend, type SimBackend, type SimUserHandle } from "../simulation/store/sim-backend.ts";
import type { UserSql } from "../../src/testing/store-cases.ts";

/** A list under one key; the simulated database has no user tables. */
export const simUserSql: UserSql = {
  create: (db) => (db as SimUserHandle).put("notes", "[]"),
  insert: async (db, text) => {
    const { get, put } = db as SimUserHandle;
    await put("notes", JSON.stringify([...(JSON.parse((await get("notes")) ?? "[]") as string[]), text]));
  },
  texts: async (db) => JSON.parse((await (db as SimUserHandle).get("notes")) ?? "[]") as string[],
};

/** A new simulated database; its time is that of the first process that opens it. */
export function simulatedSource({ optimistic = true }: { readonly optimistic?: boolean } = {}): StoreSource {
  let first: SimBackend | undefined;
  return {
    async "~open"(options) {
      const backend = first?.server.backend() ?? openSimBackend({ now: () => options.clock.now() });
      first ??= backend;
      return openRemoteStore(backend, { ...options, optimistic });
    },
  };
}
