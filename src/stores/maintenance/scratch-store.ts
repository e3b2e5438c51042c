// Scratch store: an empty store on the same server or disk as another store, for trials. The other store is not touched.
//
// scratch-store.X1. It is new, its name is random, and `drop` removes all of it.

import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Random } from "../../base/index.ts";
import { mysql } from "../mysql/source.ts";
import { postgres } from "../postgres/source.ts";
import { sqlite, type StoreSource } from "../store-source.ts";
import { NOTES, type Notes } from "./notes.ts";

export interface ScratchStore {
  readonly kind: "sqlite" | "postgres" | "mysql";
  readonly source: StoreSource;
  /** A user's table. */
  readonly notes: Notes;
  /** Removes everything in it. The notes are empty, or absent where a transaction can create them. */
  clear(): Promise<void>;
  drop(): Promise<void>;
}

export type ServerScratch = Pick<ScratchStore, "clear" | "drop"> & { readonly url: string };

/** In the folder of a SQLite file: the cases test that disk. */
export function scratchBesideFile(path: string): ScratchStore {
  const folder = mkdtempSync(join(dirname(resolve(path)), ".reprise-cases-"));
  let count = 0;
  return {
    kind: "sqlite",
    get source() {
      return sqlite(join(folder, `${count}.db`));
    },
    notes: NOTES.sqlite,
    async clear() {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(join(folder, `${count}.db${suffix}`), { force: true });
      count += 1;
    },
    drop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** On the server of a URL: a new schema on PostgreSQL, a new database on MySQL. */
export async function scratchOnServer(url: string, random: Random): Promise<ScratchStore> {
  const name = `reprise_cases_${random
    .token()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .slice(0, 12)}`;
  if (url.startsWith("postgres")) {
    const { postgresScratch } = await import("../postgres/scratch.ts");
    const made = await postgresScratch(url, name);
    return { ...made, kind: "postgres", source: postgres(made.url), notes: NOTES.postgres };
  }
  const { mysqlScratch } = await import("../mysql/scratch.ts");
  const made = await mysqlScratch(url, name);
  return { ...made, kind: "mysql", source: mysql(made.url), notes: NOTES.mysql };
}
