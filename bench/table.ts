// Lines for people.

import type { Line } from "./measure.ts";

const COLUMNS = [
  "workload",
  "variant",
  "workers",
  "perSecond",
  "p50Ms",
  "p99Ms",
  "rawPerSecond",
  "ratio",
  "bytesPerStep",
  "rssMb",
  "fsyncMs",
];
const SHOWN_ELSEWHERE = new Set([...COLUMNS, "store", "runs", "steps", "elapsedMs"]);

export function tableOf(lines: readonly Line[]): string {
  const rows = [[...COLUMNS, "also"], ...lines.map((line) => [...COLUMNS.map((name) => cell(line[name])), also(line)])];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows
    .map((row) =>
      row
        .map((text, column) =>
          column < 2 ? text.padEnd(widths[column]!) : text.padStart(column === row.length - 1 ? 0 : widths[column]!),
        )
        .join("  "),
    )
    .join("\n");
}

function cell(value: unknown): string {
  return value === null || value === undefined
    ? "–"
    : typeof value === "number"
      ? value.toLocaleString("en")
      : String(value);
}

function also(line: Line): string {
  const names = Object.keys(line).filter((name) => !SHOWN_ELSEWHERE.has(name));
  return names.map((name) => `${name} ${JSON.stringify(line[name])}`).join(", ");
}
