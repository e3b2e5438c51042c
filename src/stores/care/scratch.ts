// Scratch: a place beside a store where something can be tried, on the same server or the same disk, and nothing of the store
// itself is touched.
//
// X1. It is new, it has a name nobody else gives, and it is gone when it is dropped.

import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Random } from "../../base/index.ts";
import { mysql } from "../mysql/source.ts";
import { postgres } from "../postgres/source.ts";
import { sqlite, type StoreSource } from "../source.ts";
import { NOTES, type Notes } from "./notes.ts";

export interface Scratch {
  readonly kind: "sqlite" | "postgres" | "mysql";
  readonly source: StoreSource;
  /** A table of the user's. */
  readonly notes: Notes;
  /** Makes everything in it go away, and the notes be empty, or absent where they can be made inside a transaction. */
  clear(): Promise<void>;
  drop(): Promise<void>;
}

export type ServerScratch = Pick<Scratch, "clear" | "drop"> & { readonly url: string };

/** Beside a SQLite file, in its folder: it is that disk the question is about. */
export function scratchBesideFile(path: string): Scratch {
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

/** On the server of a URL: a schema of its own on PostgreSQL, a database of its own on MySQL. */
export async function scratchOnServer(url: string, random: Random): Promise<Scratch> {
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
