// Write one by one: repeats the writes of a failed list one by one, so that only the write that fails is lost.

import { RepriseError } from "../../base/index.ts";
import type { Outcome, Write } from "../../kernel/index.ts";

const POLLS: ReadonlySet<Write["write"]> = new Set<Write["write"]>([
  "claim-turns",
  "claim-items",
  "claim-messages",
  "fire-due",
  "admit",
]);

/** Whether the write polls for work. Most polls find none. */
export function isPoll(write: Write): boolean {
  return POLLS.has(write.write) && !isRefill(write);
}

/** queue.Q5. Whether the write belongs to the transaction of the writes before it. */
export function isRefill(write: Write): boolean {
  return write.write === "claim-items" && write.refills !== undefined;
}

const NOT_CAUSED_BY_A_WRITE: ReadonlySet<string> = new Set([
  "STORE_BUSY",
  "STORE_UNREACHABLE",
  "STORE_REPLACED",
  "USAGE",
]);

/** False when the store itself is unavailable: every write would wait as long and fail the same way. */
export function isWorthRetrying(error: unknown): boolean {
  if (!(error instanceof RepriseError) || NOT_CAUSED_BY_A_WRITE.has(error.code)) return false;
  return error.details?.["unresolved"] !== true;
}

export async function writeOneByOne(
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
      if (!isWorthRetrying(error)) break;
    }
  }
  const [first] = failed;
  if (first === undefined) return outcomes as Outcome[];
  const { code, message } = first.error as RepriseError;
  throw new RepriseError(
    code,
    `Write ${first.index + 1} of ${writes.length} failed; the other writes are not affected. ${message}`,
    { cause: first.error, details: { failed: failed.map(({ index }) => index), outcomes } },
  );
}
