// A database beside the store's own, for the time of a trial.

import { systemTimers } from "../../base/index.ts";
import { EMPTIABLE } from "../remote/tables.ts";
import type { ServerScratch } from "../care/scratch.ts";
import { addressOf } from "./address.ts";
import { DEFAULT_TIMEOUTS, Wire } from "./driver.ts";

export async function mysqlScratch(url: string, name: string): Promise<ServerScratch> {
  const wire = await Wire.open(addressOf(url), systemTimers, DEFAULT_TIMEOUTS);
  const scratchUrl = new URL(url);
  scratchUrl.pathname = `/${name}`;
  // A table cannot be made inside a transaction here.
  await wire.run([`create database \`${name}\``, `create table \`${name}\`.notes (text text not null)`]);
  return {
    url: scratchUrl.href,
    async clear() {
      const [found] = await wire.run([
        `select 1 from information_schema.tables where table_schema = '${name}' and table_name = 'reprise_runs'`,
      ]);
      const ours =
        found!.rows.length === 0 ? [] : EMPTIABLE.map((table) => `delete from \`${name}\`.\`reprise_${table}\``);
      await wire.run([...ours, `delete from \`${name}\`.notes`]);
    },
    async drop() {
      await wire.run([`drop database if exists \`${name}\``]);
      await wire.close();
    },
  };
}
