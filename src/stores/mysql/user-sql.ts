// User SQL: scans a statement for its kind and the names in it.

import { MIGRATIONS, PREFIX } from "./schema.ts";

/** Keywords, names and punctuation outside strings and comments, in lower case; a quoted name without its quotes. */
function tokensOf(sql: string): readonly string[] {
  const token =
    /(?<comment>--(?=[\s\p{Cc}]|$)[^\n]*|#[^\n]*|\/\*(?!M?!)[\s\S]*?(?:\*\/|$))|(?<text>'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*")|`(?<name>(?:[^`]|``)*)`|(?<hint>\/\*M?!)|(?<word>[\p{L}\p{N}_$@]+|\S)/gu;
  const tokens: string[] = [];
  for (const { groups = {} } of sql.matchAll(token)) {
    const { name, hint, word } = groups;
    if (hint !== undefined) tokens.push(HINT);
    const found = name ?? word;
    if (found !== undefined) tokens.push(found.toLowerCase());
  }
  return tokens;
}

/** An executable comment: the server runs its content. */
const HINT = "/*!";

const ENDS = "begins or ends a transaction: the function already runs in one, which Reprise commits when it returns";
const COMMITS = "changes the schema, which commits the transaction on MySQL: do it outside ctx.tx";
const OUTLIVES = "changes the connection or the server, which other transactions use afterwards";

/** By the first word. Savepoints are allowed. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ...["begin", "start", "commit", "end", "rollback", "xa"].map((word) => [word, ENDS] as const),
  ...["create", "alter", "drop", "truncate", "rename", "grant", "revoke", "analyze", "optimize", "repair", "check"].map(
    (word) => [word, COMMITS] as const,
  ),
  ...["cache", "install", "uninstall", "import", "backup"].map((word) => [word, COMMITS] as const),
  ...["set", "reset", "flush", "lock", "unlock", "use", "prepare", "execute", "deallocate", "kill", "load"].map(
    (word) => [word, OUTLIVES] as const,
  ),
  ...["change", "stop", "shutdown", "purge", "handler", "delimiter", "help"].map((word) => [word, OUTLIVES] as const),
]);

const OUR_TABLES: ReadonlySet<string> = new Set(
  MIGRATIONS.flat().flatMap((sql) =>
    Array.from(sql.matchAll(/create table if not exists `(\w+)`/g), ([, table = ""]) => table),
  ),
);

/** The savepoint that proves at the commit that the transaction is still the same. */
export const OUR_SAVEPOINT = `${PREFIX}tx`;

/** Why a statement may not run in ctx.tx; undefined when it may. */
export function objectionTo(sql: string): string | undefined {
  const tokens = tokensOf(sql);
  while (tokens.at(-1) === ";") (tokens as string[]).pop();
  if (tokens.includes(";")) return "has more than one statement: call `query` once per statement";
  if (tokens.includes(HINT)) return "has an executable comment (/*! … */)";
  const first = tokens.find((token) => token !== "(") ?? "";
  const isSavepoint = first === "rollback" && tokens.includes("to");
  const refused = REFUSED.get(first);
  if (refused !== undefined && !isSavepoint) return refused;
  const ours = tokens.find((token) => OUR_TABLES.has(token) || token === OUR_SAVEPOINT);
  return ours === undefined ? undefined : `uses ${ours}, which belongs to Reprise: give your table another name`;
}
