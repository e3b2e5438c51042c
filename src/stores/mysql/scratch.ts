// Scratch: a temporary database beside the store's own, for the conformance tests.

import { systemTimers } from "../../base/index.ts";
import { FEDERATED_KEY } from "../../kernel/index.ts";
import { ConnectionError } from "../remote/backend.ts";
import { withEachHost } from "../remote/hosts.ts";
import { EMPTIABLE } from "../rows/tables.ts";
import type { ServerScratch } from "../maintenance/scratch-store.ts";
import { addressOf } from "./address.ts";
import { DEFAULT_TIMEOUTS, DriverConnection } from "./driver.ts";
import { storeErrorOf } from "./errors.ts";

export async function mysqlScratch(url: string, name: string): Promise<ServerScratch> {
  // MySQL cannot create a table inside a transaction.
  const driver = await connectWith(url, [
    `create database \`${name}\``,
    `create table \`${name}\`.notes (text text not null)`,
  ]);
  return {
    url: withEachHost(url, (each) => (each.pathname = `/${name}`)),
    async clear() {
      const [found] = await driver.run([
        `select 1 from information_schema.tables where table_schema = '${name}' and table_name = 'reprise_runs'`,
      ]);
      const ours = [
        ...EMPTIABLE.map((table) => `delete from \`${name}\`.\`reprise_${table}\``),
        `delete from \`${name}\`.\`reprise_meta\` where \`key\` = '${FEDERATED_KEY}'`,
      ];
      await driver.run([...(found!.rows.length === 0 ? [] : ours), `delete from \`${name}\`.notes`]);
    },
    async drop() {
      await driver.run([`drop database if exists \`${name}\``]);
      await driver.close();
    },
  };
}

async function connectWith(url: string, first: readonly string[]): Promise<DriverConnection> {
  const address = addressOf(url);
  let driver: DriverConnection | undefined;
  try {
    driver = await DriverConnection.open(address, systemTimers, DEFAULT_TIMEOUTS);
    await driver.run(first);
    return driver;
  } catch (error) {
    driver?.destroy();
    throw storeErrorOf(
      error instanceof ConnectionError ? error.cause : error,
      `Creating a scratch database beside ${address.location}`,
    );
  }
}
