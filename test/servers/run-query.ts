// Run query: one query on a database, for tests of servers.

import { createConnection, type RowDataPacket } from "mysql2/promise";
import { Client } from "pg";

/** The first column of the result. */
export async function runQuery(url: string, query: string): Promise<readonly unknown[]> {
  if (url.startsWith("mysql:")) {
    const connection = await createConnection(url);
    const [rows] = await connection.query<RowDataPacket[]>(query);
    await connection.end();
    return rows.map((row) => Object.values(row)[0]);
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<Record<string, unknown>>(query);
  await client.end();
  return rows.map((row) => Object.values(row)[0]);
}
