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

export function tableOf(lines: readonly BenchResult[]): string {
  // Not every workload has every figure.
  const columns = COLUMNS.filter((name) => lines.some((line) => (line[name] ?? null) !== null));
  const rows = [[...columns, "also"], ...lines.map((line) => [...columns.map((name) => cell(line[name])), also(line)])];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const pad = (text: string, column: number): string => {
    // Names are left-aligned, numbers right-aligned; the last column is not padded.
    if (column === columns.length) return text;
    return column < 3 ? text.padEnd(widths[column]!) : text.padStart(widths[column]!);
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
