// Counters: how often something happened here that changed nothing.

import type { HomeDatabase } from "./home-database.ts";

export class Counters {
  readonly #db: HomeDatabase;

  constructor(db: HomeDatabase) {
    this.#db = db;
  }

  add(name: "duplicates" | "refusals", by: number): void {
    if (by === 0) return;
    this.#db.run(
      "insert into counter (name, value) values (?, ?) on conflict (name) do update set value = value + excluded.value",
      ...[name, by],
    );
  }

  all(): Record<string, number> {
    return Object.fromEntries(
      this.#db
        .all("select name, value from counter order by name")
        .map(({ name, value }) => [String(name), Number(value)]),
    );
  }
}
