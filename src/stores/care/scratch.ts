// Scratch: a place beside a store where something can be tried, on the same server or the same disk, and nothing of the store
// itself is touched.
//
// X1. It is new, it has a name nobody else gives, and it is gone when it is dropped.

import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Random } from "../../base/index.ts";
import { sqlite, type StoreSource } from "../source.ts";

export interface Scratch {
  readonly kind: "sqlite" | "postgres" | "mysql";
  readonly source: StoreSource;
  /** A folder for files. */
  readonly folder: string;
  /** Makes everything in it go away, and a table `notes (text)` of the user's be empty, or absent on SQLite. */
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
    folder,
    get source() {
      return sqlite(join(folder, `${count}.db`));
    },
    async clear() {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(join(folder, `${count}.db${suffix}`), { force: true });
      count += 1;
    },
    drop: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** On the server of a URL: a schema of its own on PostgreSQL, a database of its own on MySQL. */
export async function scratchOnServer(
  url: string,
  random: Random,
  folder: string,
  sourceOf: (url: string) => StoreSource,
): Promise<Scratch> {
  const kind = url.startsWith("postgres") ? "postgres" : "mysql";
  const name = `reprise_cases_${random
    .token()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "")
    .slice(0, 12)}`;
  const made =
    kind === "postgres"
      ? await (await import("../postgres/scratch.ts")).postgresScratch(url, name)
      : await (await import("../mysql/scratch.ts")).mysqlScratch(url, name);
  const source = sourceOf(made.url);
  return { kind, folder, source, clear: made.clear, drop: made.drop };
}
