// Print: results as a table.

import type { BenchResult } from "./measure.ts";

const COLUMNS = [
  "workload",
  "variant",
  "store",
  "workers",
  "perSecond",
  "p50Ms",
  "p99Ms",
  "rawPerSecond",
  "ratio",
  "bytesPerStep",
  "rssMb",
  "fsyncMs",
  "cpuUsPerStep",
];
const IN_COLUMNS = new Set([...COLUMNS, "runs", "steps", "elapsedMs"]);
/** Columns with names, not numbers. */
const NAMES = 3;

export function tableOf(lines: readonly BenchResult[]): string {
  const rows = lines.map((line) => ({ ...line, also: also(line) }));
  return alignedTableOf([...COLUMNS, "also"], rows, NAMES);
}

/** Columns that no line has are left out: not every workload has every figure. The first `names` columns are aligned to the left. */
export function alignedTableOf(
  allColumns: readonly string[],
  lines: readonly Readonly<Record<string, unknown>>[],
  names: number,
): string {
  const columns = allColumns.filter((name) => lines.some((line) => (line[name] ?? "") !== ""));
  const rows = [columns, ...lines.map((line) => columns.map((name) => cell(line[name])))];
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const isText = (column: number): boolean => typeof lines[0]?.[columns[column]!] === "string" || column < names;
  const pad = (text: string, column: number): string => {
    if (column === columns.length - 1 && isText(column)) return text;
    return isText(column) ? text.padEnd(widths[column]!) : text.padStart(widths[column]!);
  };
  return rows.map((row) => row.map(pad).join("  ").trimEnd()).join("\n");
}

function cell(value: unknown): string {
  if (typeof value === "number") return value.toLocaleString("en");
  return typeof value === "string" ? value : "–";
}

function also(line: BenchResult): string {
  const names = Object.keys(line).filter((name) => !IN_COLUMNS.has(name));
  return names.map((name) => `${name} ${JSON.stringify(line[name])}`).join(", ");
}
