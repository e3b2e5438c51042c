// Claims: the same program has the same claim, whatever its timing, on every store (claim.C1). The tests run on all stores
// (vitest.config.ts); test/slow/claims.test.ts has more timings.

import { expect, test } from "vitest";
import { decode, encode } from "../../src/base/index.ts";
import type { Entry } from "../../src/kernel/index.ts";
import { deriveClaim, listJournal } from "../../src/receipts/index.ts";
import { CASES, executeAll, expectOneClaim, type Executed, type Kind } from "./executions.ts";

const isOnOtherStore = process.env["REPRISE_TEST_STORE"] !== undefined;
const TIMINGS = isOnOtherStore ? 4 : 12;

test.each(CASES)(
  "the $how runs of a $kind have one claim in every timing",
  { timeout: 120_000 },
  ({ kind, isEncrypted }) => expectOneClaim(kind, TIMINGS, isEncrypted),
);

const VALUES = ["input", "result", "error", "value", "output"];

/** A journal whose values also contain a field of their entries, as if the records of steps had it. */
function leaking(field: string, entries: readonly Entry[]): readonly Entry[] {
  return entries.map((entry) => {
    const data = decode(entry.data) as Record<string, unknown>;
    if (data[field] === undefined || !/^(?:Operation|Task|Node)/.test(entry.type)) return entry;
    for (const name of VALUES) if (name in data) data[name] = { value: data[name], leaked: data[field] };
    return { ...entry, data: encode(data) };
  });
}

const MUTANTS: readonly { readonly field: string; readonly kinds: readonly Kind[] }[] = [
  { field: "index", kinds: ["workflow", "graph"] },
  { field: "attempt", kinds: ["workflow", "graph", "flow"] },
  { field: "stack", kinds: ["workflow", "graph", "flow"] },
];

const executions = new Map<Kind, Promise<readonly Executed[]>>();

test.runIf(!isOnOtherStore).each(MUTANTS.flatMap(({ field, kinds }) => kinds.map((kind) => ({ field, kind }))))(
  "with the $field in the steps of a $kind, its timings have different claims",
  async ({ field, kind }) => {
    if (!executions.has(kind)) executions.set(kind, executeAll(kind, TIMINGS, false));
    const executed = await executions.get(kind)!;
    const keys = new Set<string>();
    for (const { runs } of executed) {
      const { record, entries } = [...runs.values()][0]!;
      keys.add((await deriveClaim(record, listJournal(leaking(field, entries)))).key);
    }
    expect(keys.size).toBeGreaterThan(1);
  },
);
