// Parse schema: reads tables and indexes from the text of migrations, as far as they use the few forms of our own schemas.

export interface ParsedColumn {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
}

export interface ParsedTable {
  readonly columns: readonly ParsedColumn[];
  readonly key: readonly string[];
}

export interface ParsedIndex {
  readonly table: string;
  /** "-" before the name of a descending column. */
  readonly columns: readonly string[];
  readonly unique: boolean;
  readonly where: readonly string[];
}

export interface ParsedSchema {
  readonly tables: ReadonlyMap<string, ParsedTable>;
  readonly indexes: ReadonlyMap<string, ParsedIndex>;
}

/** Unique constraints without a name are named after their columns, as in "runs(id,generation)". */
export function parseSchema(sql: string): ParsedSchema {
  const tables = new Map<string, ParsedTable>();
  const indexes = new Map<string, ParsedIndex>();
  for (const [statement, name] of sql.matchAll(/create table (?:if not exists )?`?(\w+)`? \(/g)) {
    const parts = topLevel(inParentheses(sql, sql.indexOf(statement) + statement.length));
    let key: readonly string[] = [];
    const columns: ParsedColumn[] = [];
    for (const part of parts) {
      const constraint = /^(primary key|unique key|unique|key)(?: `(\w+)`)? \((.*)\)$/.exec(part);
      if (constraint === null) {
        const column = parseColumn(part);
        if (column !== undefined) columns.push(column);
        if (part.includes("primary key")) key = [column!.name];
        continue;
      }
      const names = topLevel(constraint[3]!).map(unquoted);
      if (constraint[1] === "primary key") key = names;
      else
        indexes.set(constraint[2] ?? `${name}(${names.join()})`, {
          table: name!,
          columns: names,
          unique: constraint[1] !== "key",
          where: [],
        });
    }
    tables.set(name!, { columns, key });
  }
  for (const [, name, column] of sql.matchAll(/alter table `?(\w+)`? add column ([^;]+)/g)) {
    const table = tables.get(name!)!;
    const added = parseColumn(column!.trim());
    if (added !== undefined) tables.set(name!, { ...table, columns: [...table.columns, added] });
  }
  for (const [, unique, name, table, columns, where] of sql.matchAll(
    /create (unique )?index `?(\w+)`? on `?(\w+)`?\s+\(([^)]*)\)(?:\s+where ([^;]*))?(?:;|$)/g,
  ))
    indexes.set(name!, {
      table: table!,
      columns: topLevel(columns!)
        .map(unquoted)
        .map((column) => (column.endsWith(" desc") ? `-${column.slice(0, -5)}` : column)),
      unique: unique !== undefined,
      where: conditionsIn(where),
    });
  return { tables, indexes };
}

export function conditionsIn(where: string | undefined): readonly string[] {
  return where === undefined ? [] : where.trim().split(/\s+and\s+/);
}

/** Undefined for a generated column. */
function parseColumn(part: string): ParsedColumn | undefined {
  if (part.includes("generated always as")) return undefined;
  const [name, type] = part.split(" ");
  return { name: unquoted(name!), type: type!, nullable: !/not null|primary key/.test(part) };
}

function unquoted(name: string): string {
  return name.replaceAll(/[`"]/g, "");
}

/** The text from here to the closing parenthesis. */
function inParentheses(sql: string, from: number): string {
  let depth = 1;
  let at = from;
  for (; depth > 0; at++) depth += sql[at] === "(" ? 1 : sql[at] === ")" ? -1 : 0;
  return sql.slice(from, at - 1);
}

/** The parts between commas that are in no parentheses. */
function topLevel(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at <= text.length; at++) {
    const char = text[at];
    if (char === "(") depth += 1;
    else if (char === ")") depth -= 1;
    if (at < text.length && (char !== "," || depth > 0)) continue;
    parts.push(text.slice(from, at).replaceAll(/\s+/g, " ").trim());
    from = at + 1;
  }
  return parts;
}
