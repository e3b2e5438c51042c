// User SQL: scans a statement for its kind and the names in it.

/** The keywords and names outside strings and comments. A quoted name keeps its quotes. */
function tokensOf(sql: string): readonly string[] {
  const tokens: string[] = [];
  const token =
    /--[^\n]*|\/\*|[eE]'(?:[^'\\]|\\[\s\S]|'')*'|'(?:[^']|'')*'|\$(?<tag>[\p{L}_]?[\p{L}\p{N}_]*)\$|(?:[uU]&)?"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*|\d+|\S/gu;
  for (let match = token.exec(sql); match !== null; match = token.exec(sql)) {
    const [text] = match;
    const tag = match.groups?.["tag"];
    if (text === "/*") token.lastIndex = endOfComment(sql, token.lastIndex);
    else if (tag !== undefined && text !== "$$" && /^\d/.test(tag)) tokens.push(text);
    else if (tag !== undefined) {
      const end = sql.indexOf(text, token.lastIndex);
      token.lastIndex = end === -1 ? sql.length : end + text.length;
    } else if (!text.startsWith("--") && !/^[eE]?'/.test(text)) tokens.push(text);
  }
  return tokens;
}

/** Comments nest. */
function endOfComment(sql: string, from: number): number {
  let depth = 1;
  const edge = /\/\*|\*\//g;
  edge.lastIndex = from;
  for (let match = edge.exec(sql); match !== null; match = edge.exec(sql)) {
    depth += match[0] === "/*" ? 1 : -1;
    if (depth === 0) return edge.lastIndex;
  }
  return sql.length;
}

const ENDS = "begins or ends a transaction: the function already runs in one, which Reprise commits when it returns";
const OUTLIVES = "changes the connection, which other transactions use afterwards";

/** By the first word, or the first two. Savepoints are allowed. */
const REFUSED: Readonly<Record<string, string>> = {
  begin: ENDS,
  start: ENDS,
  commit: ENDS,
  end: ENDS,
  abort: ENDS,
  rollback: ENDS,
  prepare: OUTLIVES,
  execute: OUTLIVES,
  deallocate: OUTLIVES,
  discard: OUTLIVES,
  reset: OUTLIVES,
  set: OUTLIVES,
  listen: OUTLIVES,
  unlisten: OUTLIVES,
  load: OUTLIVES,
  copy: "copies to or from the connection",
};
const ALLOWED: ReadonlySet<string> = new Set(["rollback to", "set local", "set constraints"]);
const TEMPORARY: ReadonlySet<string> = new Set(["temp", "temporary"]);

/** Why a statement may not run in ctx.tx; undefined when it may. */
export function objectionTo(sql: string, schema: string): string | undefined {
  const tokens = tokensOf(sql);
  const [first = "", second = "", third = "", fourth = ""] = tokens.map((token) => token.toLowerCase());
  const refused = REFUSED[first];
  const isSavepoint = first === "rollback" && ALLOWED.has(`rollback ${second === "work" ? third : second}`);
  if (refused !== undefined && !isSavepoint && (!ALLOWED.has(`${first} ${second}`) || third === "session"))
    return refused;
  if (first === "create" && [second, third, fourth].some((word) => TEMPORARY.has(word)))
    return "creates a temporary object, which would outlive the transaction";
  if (tokens.some((token, index) => tokens[index + 1] === "." && isName(token, schema)))
    return `uses the schema ${schema}, which belongs to Reprise`;
  return undefined;
}

function isName(token: string, name: string): boolean {
  return token === `"${name}"` || token.toLowerCase() === name;
}
