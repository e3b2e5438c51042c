// View statements: the SQL that creates the views of rows/views.ts on the database of a URL, for an administrator: a migration skips
// the views if its role may not create them.

import { VIEW_STATEMENTS as MYSQL } from "../mysql/schema.ts";
import { addressOf } from "../postgres/address.ts";
import { VIEW_STATEMENTS as POSTGRES } from "../postgres/schema.ts";
import { quoted } from "../postgres/shapes.ts";
import { VIEW_STATEMENTS as SQLITE } from "../sqlite/schema.ts";
import { isServer } from "../store-url.ts";

/** Each ends with a semicolon, and may be run again. */
export function viewStatements(store: string): readonly string[] {
  if (!isServer(store)) return SQLITE;
  if (!store.startsWith("postgres")) return MYSQL.map((sql) => `${sql};`);
  const { schema } = addressOf(store);
  return POSTGRES.map((sql) => `${sql.replaceAll("%1$I", quoted(`${schema}_v1`)).replaceAll("%2$I", quoted(schema))};`);
}
