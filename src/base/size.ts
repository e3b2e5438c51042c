// Size: numbers of bytes as options give them.

import { inspect } from "node:util";
import { RepriseError } from "./errors.ts";

/** `1024`, `"64 KB"`, `"1MiB"`: bytes, or a number and a unit. K, M and G count in thousands, Ki, Mi and Gi in 1,024. */
export type Size = number | `${number}${"" | " "}${SizeUnit}`;
export type SizeUnit = "B" | "KB" | "MB" | "GB" | "KiB" | "MiB" | "GiB";

const BYTES: Readonly<Record<SizeUnit, number>> = {
  B: 1,
  KB: 1_000,
  MB: 1_000_000,
  GB: 1_000_000_000,
  KiB: 1_024,
  MiB: 1_048_576,
  GiB: 1_073_741_824,
};

/** Whole bytes. */
export function toBytes(size: unknown, what: string): number {
  const parts = typeof size === "string" ? /^(?<count>\d+(?:\.\d+)?) ?(?<unit>B|[KMG]i?B)$/.exec(size) : null;
  const { count, unit } = parts?.groups ?? {};
  const bytes = unit === undefined ? size : Number(count) * BYTES[unit as SizeUnit];
  if (typeof bytes === "number" && Number.isSafeInteger(Math.round(bytes)) && bytes > 0) return Math.round(bytes);
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected a size above 0, such as 65536, "64 KB" or "1MiB", got ${inspect(size)}.`,
  );
}
