// SQLite history: makes backups of a SQLite file, and restores one into the live file.
//
// Everything here is one step of the simulation: `backup` of node:sqlite uses another thread, so a backup is
// `VACUUM INTO`, and a restore replaces the rows of all tables in one transaction. Other connections see the same as after
// the online backup API has written the file: another `data_version`, other rows, the same connection.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

interface Backup {
  readonly atMs: number;
  readonly path: string;
}

const KEPT = 8;

export class SqliteHistory {
  readonly #db: DatabaseSync;
  readonly #folder: string;
  #backups: Backup[] = [];
  #made = 0;

  constructor(path: string, folder: string) {
    this.#db = new DatabaseSync(path);
    this.#folder = folder;
  }

  backUp(atMs: number): void {
    const path = join(this.#folder, `backup-${this.#made++}.db`);
    this.#db.exec(`vacuum into '${path}'`);
    this.#backups.push({ atMs, path });
    if (this.#backups.length > KEPT) rmSync(this.#backups.shift()!.path);
  }

  /** The backups made until then. */
  before(ms: number): readonly Backup[] {
    return this.#backups.filter(({ atMs }) => atMs <= ms);
  }

  restore({ atMs, path }: Backup): void {
    const db = this.#db;
    db.exec(`attach '${path}' as backup`);
    try {
      db.exec("begin immediate");
      const tablesOf = (schema: string): readonly string[] =>
        db
          .prepare(`select name from ${schema}.sqlite_schema where type = 'table' and name not like 'sqlite_stat%'`)
          .all()
          .map((row) => String(row["name"]));
      const [now, then] = [tablesOf("main"), new Set(tablesOf("backup"))];
      for (const table of now) {
        if (!then.has(table)) {
          db.exec(`drop table main."${table}"`);
          continue;
        }
        db.exec(`delete from main."${table}"`);
        db.exec(`insert into main."${table}" select * from backup."${table}"`);
      }
      db.exec("commit");
    } catch (error) {
      if (db.isTransaction) db.exec("rollback");
      throw error;
    } finally {
      db.exec("detach backup");
    }
    // Later backups belong to a lost history; an operator may still restore one.
    this.#backups = this.#backups.filter((backup) => backup.atMs <= atMs);
  }

  close(): void {
    this.#db.close();
  }
}
