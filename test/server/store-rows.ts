// Store rows: what a request changed in a SQLite store, seen by another connection.

import { DatabaseSync } from "node:sqlite";

/** Rows that workers and connections change by themselves. */
const OWN_BUSINESS = new Set(["workers", "writers", "meta"]);

/** Every row of the store, by table. */
export class StoreRows implements Disposable {
  readonly #db: DatabaseSync;
  readonly #tables: readonly string[];

  constructor(path: string) {
    this.#db = new DatabaseSync(path, { readOnly: true });
    const tables = this.#db.prepare("select name from sqlite_schema where type = 'table' order by name").all();
    this.#tables = tables.map(({ name }) => String(name)).filter((name) => !OWN_BUSINESS.has(name));
  }

  read(): Record<string, unknown> {
    return Object.fromEntries(this.#tables.map((name) => [name, this.#db.prepare(`select * from "${name}"`).all()]));
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
