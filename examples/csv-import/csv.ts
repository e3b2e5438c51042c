// Reads comma-separated values: quoted fields, doubled quotes, any line end.

export function parseCsv(text: string): readonly Readonly<Record<string, string>>[] {
  const [head = [], ...rows] = parseRows(text);
  return rows.map((fields) => Object.fromEntries(head.map((name, index) => [name, fields[index] ?? ""])));
}

function parseRows(text: string): string[][] {
  const rows: string[][] = [];
  for (const [, field = "", end = ""] of text.matchAll(/("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/g)) {
    if (rows.length === 0) rows.push([]);
    const value = field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field;
    rows.at(-1)?.push(value);
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  // A line end at the end of the file starts no row.
  if (rows.at(-1)?.join("") === "") rows.pop();
  return rows;
}
