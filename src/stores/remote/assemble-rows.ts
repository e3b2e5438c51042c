// Assemble rows: fetches the contents that loaded rows refer to, and puts the payloads in their place.

import type { RunNumber } from "../../kernel/index.ts";
import { assemble, type Contents } from "../contents/run-contents.ts";
import { isReference } from "../contents/reference.ts";
import { PAYLOADS, type AnyRow, type TableName } from "../rows/tables.ts";
import { lookup, type Query } from "./query.ts";

const KEY: readonly string[] = ["run", "content"];
/** Contents in one round trip: up to some ten megabytes. */
const AT_ONCE = 64;

/** Changes the given rows. `read` returns rows as they are stored; a tree of references needs one round trip per level. */
export async function assembleRows(
  contents: Contents,
  tables: readonly TableName[],
  results: readonly (readonly AnyRow[])[],
  read: (queries: readonly Query[]) => Promise<readonly (readonly AnyRow[])[]>,
): Promise<void> {
  let left = referencesIn(tables, results);
  if (left.length === 0) return;
  // What this call has fetched, however little the cache keeps.
  const fetched = new Map<string, string>();
  while (left.length > 0) {
    const missing = new Map<string, readonly [RunNumber, string]>();
    left = left.filter(({ row, column }) => {
      const text = assemble(row[column] as string, (run, content) => {
        const name = `${run}/${content}`;
        const found = fetched.get(name) ?? contents.cached(run, content);
        if (found === undefined) missing.set(name, [run, content]);
        else fetched.set(name, found);
        return found;
      });
      if (text !== undefined) row[column] = text;
      return text === undefined;
    });
    const keys = [...missing.values()];
    for (let from = 0; from < keys.length; from += AT_ONCE) {
      const some = keys.slice(from, from + AT_ONCE);
      const [rows = []] = await read([lookup("run_contents", KEY, some, "none")]);
      const stored = new Map(rows.map((row) => [`${row["run"]}/${row["content"]}`, row["data"]]));
      const texts = some.map(async ([run, content]) => {
        const name = `${run}/${content}`;
        const data = stored.get(name);
        const isOutside = data === null && contents.outside !== undefined;
        const text = isOutside ? await contents.outside!.get(run, content) : (data ?? undefined);
        const where = isOutside ? contents.outside!.name : undefined;
        fetched.set(name, contents.accept(run, content, text as string | undefined, where));
      });
      await Promise.all(texts);
    }
  }
}

interface Referring {
  readonly row: AnyRow;
  readonly column: string;
}

function referencesIn(tables: readonly TableName[], results: readonly (readonly AnyRow[])[]): Referring[] {
  const found: Referring[] = [];
  for (const [index, table] of tables.entries()) {
    const payload = PAYLOADS[table];
    if (payload?.contents === undefined) continue;
    const { column } = payload;
    for (const row of results[index]!) {
      const text = row[column];
      if (typeof text === "string" && isReference(text)) found.push({ row, column });
    }
  }
  return found;
}
