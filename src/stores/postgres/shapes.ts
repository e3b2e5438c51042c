// Shapes: names the text of each statement once, so that every connection prepares and plans it once.

import type { TableName } from "../rows/tables.ts";
import type { Shape } from "./wire.ts";

/** Beyond this number statements stay unnamed: texts that never repeat must not fill the server's memory. */
const MOST_NAMES = 2_000;

/** One per backend. */
export class Shapes {
  /** Quoted. */
  readonly schema: string;
  readonly #byText = new Map<string, Shape>();
  readonly #tables = new Map<TableName, string>();

  constructor(schema: string) {
    this.schema = quoted(schema);
  }

  of(text: string): Shape {
    const known = this.#byText.get(text);
    if (known !== undefined) return known;
    if (this.#byText.size >= MOST_NAMES) return { name: undefined, text };
    const shape = { name: `r${this.#byText.size}`, text };
    this.#byText.set(text, shape);
    return shape;
  }

  table(table: TableName): string {
    let text = this.#tables.get(table);
    if (text === undefined) this.#tables.set(table, (text = `${this.schema}.${quoted(table)}`));
    return text;
  }
}

/** A cache: there are few names, and each is used often. */
const quotedNames = new Map<string, string>();
const MOST_QUOTED = 1_000;

export function quoted(name: string): string {
  const known = quotedNames.get(name);
  if (known !== undefined) return known;
  const text = `"${name.replaceAll('"', '""')}"`;
  if (quotedNames.size < MOST_QUOTED) quotedNames.set(name, text);
  return text;
}

/** A value as an SQL literal; `standard_conforming_strings` is on, so backslashes are not escaped. */
export function literal(value: number | string | null): string {
  if (value === null) return "null";
  return typeof value === "number" ? String(value) : `'${value.replaceAll("'", "''")}'`;
}
