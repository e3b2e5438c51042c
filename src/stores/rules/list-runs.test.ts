import { expect, test } from "vitest";
import { RowStore } from "../../../test/stores/differential/row-store.ts";
import { runRow } from "../../../test/stores/rows.ts";
import type { RunFilter } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";
import { listRuns } from "./list-runs.ts";

interface Some {
  readonly run: number;
  readonly status?: string;
  readonly definition?: string;
  readonly kind?: string;
  readonly tags?: readonly string[];
}

async function storeWith(runs: readonly Some[]) {
  const store = new RowStore(() => 1);
  await store.transact(1, ({ rows }) => {
    for (const { run, tags = [], ...more } of runs) {
      rows.insert("runs", runRow(run, { evidence: '{"message":"large"}', ...more }) as RowOf<"runs">);
      for (const [position, tag] of tags.entries()) rows.insert("tags", { run, tag, position });
    }
  });
  return (filter: RunFilter): Promise<readonly number[]> =>
    store.read((rows) => listRuns(rows, filter).map(({ run }) => run));
}

const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

test("a list is newest first, and `before` continues a page", async () => {
  const list = await storeWith(range(1, 7).map((run) => ({ run })));
  expect(await list({ limit: 3 })).toEqual([7, 6, 5]);
  expect(await list({ limit: 3, before: 5 })).toEqual([4, 3, 2]);
  expect(await list({ limit: 3, before: 2 })).toEqual([1]);
  expect(await list({ limit: 3, before: 1 })).toEqual([]);
});

test("a list has the tags of its runs in order, and no evidence", async () => {
  const store = new RowStore(() => 1);
  await store.transact(1, ({ rows }) => {
    rows.insert("runs", runRow(1, { evidence: '{"message":"large"}' }) as RowOf<"runs">);
    for (const [position, tag] of ["z", "a"].entries()) rows.insert("tags", { run: 1, tag, position });
  });
  const [record] = await store.read((rows) => listRuns(rows, { limit: 1 }));
  expect([record?.tags, record?.evidence]).toEqual([["z", "a"], undefined]);
});

test("conditions combine: definition, kind and statuses", async () => {
  const list = await storeWith([
    { run: 1, definition: "a", status: "failed" },
    { run: 2, definition: "b", status: "failed" },
    { run: 3, definition: "a", status: "completed" },
    { run: 4, definition: "a", status: "failed", kind: "graph" },
    { run: 5, definition: "a", status: "blocked" },
  ]);
  expect(await list({ definition: "a", limit: 10 })).toEqual([5, 4, 3, 1]);
  expect(await list({ definition: "a", statuses: ["failed"], limit: 10 })).toEqual([4, 1]);
  expect(await list({ definition: "a", statuses: ["completed", "failed"], limit: 10 })).toEqual([4, 3, 1]);
  expect(await list({ kind: "graph", limit: 10 })).toEqual([4]);
  expect(await list({ kind: "workflow", statuses: ["failed"], definition: "b", limit: 10 })).toEqual([2]);
  expect(await list({ statuses: [], limit: 10 })).toEqual([]);
});

test("a page over several statuses merges them by number, and a status that is named twice counts once", async () => {
  const status = (run: number): string => (run % 2 === 0 ? "failed" : "blocked");
  const list = await storeWith(range(1, 8).map((run) => ({ run, status: status(run) })));
  expect(await list({ statuses: ["failed", "blocked"], limit: 3 })).toEqual([8, 7, 6]);
  expect(await list({ statuses: ["failed", "blocked"], limit: 3, before: 6 })).toEqual([5, 4, 3]);
  expect(await list({ statuses: ["failed", "failed"], limit: 3 })).toEqual([8, 6, 4]);
});

test("a tag whose newest runs do not match is read further, until the page is full", async () => {
  const runs = range(1, 100).map((run) => ({
    run,
    tags: run % 2 === 0 ? ["even", "all"] : ["all"],
    status: run <= 6 ? "failed" : "completed",
  }));
  const list = await storeWith(runs);
  expect(await list({ tags: ["even"], limit: 2 })).toEqual([100, 98]);
  // More than two pages of 20 runs do not match.
  expect(await list({ tags: ["even"], statuses: ["failed"], limit: 2 })).toEqual([6, 4]);
  expect(await list({ tags: ["even"], statuses: ["failed"], limit: 9 })).toEqual([6, 4, 2]);
  expect(await list({ tags: ["even"], statuses: ["failed"], before: 4, limit: 9 })).toEqual([2]);
  expect(await list({ tags: ["none"], limit: 9 })).toEqual([]);
});
