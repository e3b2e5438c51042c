// Singly: a write that breaks something unexpected is found by doing the list's writes one by one; it hurts no other.

import { RepriseError } from "../../base/index.ts";
import type { Outcome, Write } from "../../kernel/index.ts";

const POLLS: ReadonlySet<Write["write"]> = new Set<Write["write"]>([
  "claim-turns",
  "claim-items",
  "claim-messages",
  "fire-due",
  "admit",
]);

/** Looks for work, and mostly finds none. */
export function isPoll({ write }: Write): boolean {
  return POLLS.has(write);
}

const HOPELESS: ReadonlySet<string> = new Set(["STORE_BUSY", "STORE_UNREACHABLE", "STORE_REPLACED", "USAGE"]);

/** Not when the store itself is out of reach: then every write would wait as long and fail alike. */
export function isWorthRepeating(error: unknown): boolean {
  if (!(error instanceof RepriseError) || HOPELESS.has(error.code)) return false;
  return error.details?.["unresolved"] !== true;
}

export async function writeSingly(
  writes: readonly Write[],
  writeOne: (write: Write) => Promise<Outcome>,
): Promise<readonly Outcome[]> {
  const outcomes: (Outcome | undefined)[] = [];
  const failed: { index: number; error: unknown }[] = [];
  for (const [index, write] of writes.entries()) {
    try {
      outcomes.push(await writeOne(write));
    } catch (error) {
      outcomes.push(undefined);
      failed.push({ index, error });
      if (!isWorthRepeating(error)) break;
    }
  }
  const [first] = failed;
  if (first === undefined) return outcomes as Outcome[];
  const { code, message } = first.error as RepriseError;
  throw new RepriseError(
    code,
    `Write ${first.index} of ${writes.length} failed, the others stand on their own: ${message}`,
    { cause: first.error, details: { failed: failed.map(({ index }) => index), outcomes } },
  );
}
