// MySQL fixture: a fresh database on the shared MariaDB with Reprise's schema, a backend, and connections for direct SQL.

import { createConnection, type Connection } from "mysql2/promise";
import { systemRandom, systemTimers } from "../../../src/base/index.ts";
import type { Backend } from "../../../src/stores/remote/backend.ts";
import { openMysqlBackend, type MysqlBackendOptions } from "../../../src/stores/mysql/backend.ts";
import { freshDatabase, type FreshDatabase } from "../../servers/index.ts";

export interface MysqlFixture extends AsyncDisposable {
  readonly database: FreshDatabase;
  readonly backend: Backend;
  open(options?: Partial<MysqlBackendOptions>): Backend;
  /** A connection for direct SQL. */
  raw(): Promise<Connection>;
}

export async function createMysqlFixture(options: Partial<MysqlBackendOptions> = {}): Promise<MysqlFixture> {
  const database = await freshDatabase("mysql");
  const connections: Connection[] = [];
  const open = (others: Partial<MysqlBackendOptions> = {}): Backend =>
    openMysqlBackend({
      url: database.url,
      random: systemRandom,
      timers: systemTimers,
      durability: "full",
      ...options,
      ...others,
    });
  return {
    database,
    backend: open(),
    open,
    raw: async () => {
      const connection = await createConnection({ uri: database.url, multipleStatements: true, rowsAsArray: true });
      connections.push(connection);
      return connection;
    },
    [Symbol.asyncDispose]: async () => {
      for (const connection of connections) connection.destroy();
      await database[Symbol.asyncDispose]();
    },
  };
}
