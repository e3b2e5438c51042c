// Sync state: what a site remembers of its last exchanges, in `sync.db` of its home.
//
// sync-state.S1. It is a cache: without it a push compares packs again, and a pull reads a few files again.

import { join } from "node:path";
import { HomeDatabase, type Schema } from "../home/home-database.ts";

/** "Repy" in the header of the file. */
const SCHEMA: Schema = {
  applicationId: 0x52657079,
  migrations: ["create table remembered (key text primary key, value text not null) strict, without rowid;"],
};

export class SyncState {
  readonly #db: HomeDatabase;

  private constructor(db: HomeDatabase) {
    this.#db = db;
  }

  /** `dir`: the folder of the home. */
  static open(dir: string): SyncState {
    return new SyncState(new HomeDatabase(join(dir, "sync.db"), SCHEMA));
  }

  get(key: string): string | undefined {
    const row = this.#db.get("select value from remembered where key = ?", key);
    return row && String(row["value"]);
  }

  set(key: string, value: string): void {
    this.#db.run(
      "insert into remembered (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
      key,
      value,
    );
  }

  close(): void {
    this.#db.close();
  }
}
