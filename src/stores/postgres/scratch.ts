// Scratch: a temporary schema beside the store's own, for the conformance tests.

import type { Client } from "pg";
import { FEDERATED_KEY } from "../../kernel/index.ts";
import { withEachHost } from "../remote/hosts.ts";
import { ConnectionError } from "../remote/backend.ts";
import { EMPTIABLE } from "../rows/tables.ts";
import type { ServerScratch } from "../maintenance/scratch-store.ts";
import { addressOf } from "./address.ts";
import { connectClient, DEFAULT_TIMEOUTS } from "./driver.ts";
import { storeErrorOf } from "./errors.ts";

export async function postgresScratch(url: string, name: string): Promise<ServerScratch> {
  const scratchUrl = withEachHost(url, (each) => each.searchParams.set("schema", name));
  // User SQL has its own schema, in the search path of its connections.
  const users = `${name}_users`;
  const client = await connectWith(scratchUrl, `create schema "${users}"`);
  return {
    url: withEachHost(scratchUrl, (each) => each.searchParams.set("options", `-c search_path=${users}`)),
    async clear() {
      const { rows } = await client.query("select 1 from pg_namespace where nspname = $1", [name]);
      if (rows.length > 0) {
        await client.query(`truncate ${EMPTIABLE.map((table) => `"${name}"."${table}"`).join(", ")}`);
        await client.query(`delete from "${name}".meta where key = $1`, [FEDERATED_KEY]);
      }
      await client.query(`drop table if exists "${users}".notes`);
    },
    async drop() {
      await client.query(`drop schema if exists "${name}" cascade`);
      await client.query(`drop schema if exists "${name}_v1" cascade`);
      await client.query(`drop schema if exists "${users}" cascade`);
      await client.end();
    },
  };
}

async function connectWith(url: string, first: string): Promise<Client> {
  const address = addressOf(url);
  let client: Client | undefined;
  try {
    client = await connectClient(address, DEFAULT_TIMEOUTS, "reprise doctor");
    await client.query(first);
    return client;
  } catch (error) {
    await client?.end();
    throw storeErrorOf(
      error instanceof ConnectionError ? error.cause : error,
      `Creating a scratch schema in ${address.location}`,
    );
  }
}
