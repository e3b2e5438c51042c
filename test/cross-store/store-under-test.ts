// Store under test: runs tests that were written for SQLite on another database. The test files are the same; `reprise`,
// `reprise/testing` and `reprise/sqlite` are replaced (vitest.config.ts): every store they name is a database on a
// server, or a simulated remote database.
//
// store-under-test.E1. A path is a database: the same path gives the same database. Each `:memory:` is a new one.
// store-under-test.E2. A database is dropped after its test file.

import { afterAll } from "vitest";
import { RepriseError } from "../../src/base/index.ts";
import { mysql, postgres, type StoreSource } from "../../src/stores/index.ts";
import { freshDatabase, type FreshDatabase } from "../servers/index.ts";
import { simulatedSource } from "../stores/remote-fixture.ts";

const PLACES = ["postgres", "mysql", "simulated"] as const;
const place = PLACES.find((one) => one === process.env["REPRISE_TEST_STORE"]);
if (place === undefined) throw new Error(`Expected REPRISE_TEST_STORE to be one of ${PLACES.join(", ")}.`);

let databases: Promise<FreshDatabase>[] = [];
const byPath = new Map<string, StoreSource>();

/** The store under test for a `sqlite:` address. */
export function storeUnderTest(store: unknown): StoreSource {
  if (typeof store === "object" && store !== null && "~open" in store) return store as StoreSource;
  const path = typeof store === "string" ? /^sqlite:(.+)$/s.exec(store)?.[1] : undefined;
  if (path === undefined) throw new RepriseError("BAD_STORE_URL", "Cross-store tests have no SQLite store.");
  return sourceAt(path);
}

export function sourceAt(path: string): StoreSource {
  const known = byPath.get(path);
  if (known !== undefined && path !== ":memory:") return known;
  const source = place === "simulated" ? simulatedSource() : onServer(place as "postgres" | "mysql");
  byPath.set(path, source);
  return source;
}

function onServer(kind: "postgres" | "mysql"): StoreSource {
  let database: Promise<FreshDatabase> | undefined;
  return {
    async "~open"(options) {
      if (database === undefined) databases.push((database = freshDatabase(kind)));
      const { url } = await database;
      return (kind === "postgres" ? postgres(url) : mysql(url))["~open"](options);
    },
  };
}

/** store-under-test.E2. For the set-up of each file. */
export function dropAfterAll(): void {
  afterAll(async () => {
    const done = databases;
    databases = [];
    byPath.clear();
    for (const database of done) await (await database)[Symbol.asyncDispose]();
  });
}
