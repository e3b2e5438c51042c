// Open database: opens the database of a measurement: a file, a server started for it, or the database at a given address.

import type { BenchDatabase } from "./database.ts";
import { remoteDatabase } from "./raw-remote.ts";
import { sqliteDatabase } from "./raw-sqlite.ts";
import { startServer } from "./server.ts";

const KINDS = ["postgres", "mysql"] as const;

export function isDatabase(store: string): boolean {
  return store === "sqlite" || KINDS.some((kind) => kind === store || store.startsWith(`${kind}://`));
}

export async function openDatabase(store: string): Promise<BenchDatabase> {
  if (store === "sqlite") return sqliteDatabase();
  const kind = KINDS.find((one) => store.startsWith(one));
  if (kind === undefined)
    throw new Error(`Expected sqlite, postgres, mysql or the address of an empty database, got ${store}.`);
  const server = store === kind ? await startServer(kind) : { url: store, usage: () => ({ cpuMs: 0, peakRssMb: 0 }) };
  return remoteDatabase(kind, server);
}
