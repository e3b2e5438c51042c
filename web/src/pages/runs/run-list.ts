// Run list: the rows of the page. Changes patch rows in place; new runs wait behind a button; a row that no longer matches stays.
//
// run-list.N1. Nothing jumps: rows are added, removed and sorted only when the person loads the list.

import { batch, signal, type Signal } from "@preact/signals";
import type { RunNow, RunSummary } from "../../../../src/contract/run.ts";
import { get, Problem } from "../../api.ts";
import type { LiveEvent } from "../../live.ts";
import { matches, selectionOf, type Filter } from "./filter.ts";

const PAGE = 50;
/** More rows than this make every change slow; older runs are a page of their own. */
export const MOST_ROWS = 500;
const REASONS_AT_ONCE = 100;

export interface Row {
  readonly id: string;
  readonly summary: Signal<RunSummary>;
  readonly now: Signal<RunNow | undefined>;
  /** It no longer matches the filter, or was deleted. */
  readonly gone: Signal<boolean>;
}

interface Page {
  readonly items: readonly RunSummary[];
  readonly next?: string;
}

export interface RunList {
  readonly filter: Filter;
  readonly rows: Signal<readonly Row[]>;
  readonly next: Signal<string | undefined>;
  readonly loading: Signal<boolean>;
  readonly problem: Signal<Problem | undefined>;
  /** How many runs that match are not among the rows. */
  readonly fresh: Signal<number>;
  readonly load: () => Promise<void>;
  readonly more: () => Promise<void>;
  readonly take: (event: LiveEvent) => void;
  /** Reads what the runs do now; all live rows, or those that changed. */
  readonly readReasons: (all: boolean) => Promise<void>;
}

const ENDED = new Set(["completed", "failed", "cancelled", "continued"]);

export function createRunList(filter: Filter, after: string): RunList {
  const rows = signal<readonly Row[]>([]);
  const next = signal<string | undefined>(undefined);
  const loading = signal(true);
  const problem = signal<Problem | undefined>(undefined);
  const fresh = signal(0);
  const byId = new Map<string, Row>();
  const freshIds = new Set<string>();
  const changed = new Set<string>();
  let loads = 0;
  let isReading = false;

  const rowOf = (summary: RunSummary): Row => {
    const known = byId.get(summary.id);
    if (known !== undefined) {
      if (known.summary.peek().entries !== summary.entries || known.summary.peek().status !== summary.status)
        changed.add(summary.id);
      known.summary.value = summary;
      known.gone.value = false;
      return known;
    }
    const row: Row = { id: summary.id, summary: signal(summary), now: signal(undefined), gone: signal(false) };
    byId.set(summary.id, row);
    changed.add(summary.id);
    return row;
  };

  const read = async (from: string | undefined): Promise<Page | undefined> => {
    loads += 1;
    const own = loads;
    loading.value = true;
    try {
      const page = await get<Page>("/v1/runs", { query: { ...selectionOf(filter), limit: PAGE, after: from } });
      if (own !== loads) return undefined;
      problem.value = undefined;
      return page;
    } catch (thrown) {
      if (own === loads && thrown instanceof Problem && !thrown.isOutage) problem.value = thrown;
      return undefined;
    } finally {
      if (own === loads) loading.value = false;
    }
  };

  const readReasons = async (all: boolean): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      const wanted = rows
        .peek()
        .filter((row) => changed.has(row.id) || (all && !ENDED.has(row.summary.peek().status)))
        .map(({ id }) => id);
      for (let start = 0; start < wanted.length; start += REASONS_AT_ONCE) {
        const ids = wanted.slice(start, start + REASONS_AT_ONCE);
        for (const id of ids) changed.delete(id);
        const { items } = await get<{ readonly items: readonly RunNow[] }>("/v1/reasons", { query: { run: ids } });
        batch(() => {
          for (const item of items) {
            const row = byId.get(item.run);
            if (row !== undefined && !isSame(row.now.peek(), item)) row.now.value = item;
          }
        });
      }
    } catch {
      // The list itself says when the server is out of reach.
    } finally {
      isReading = false;
    }
  };

  const show = (page: Page, before: readonly Row[]): void => {
    batch(() => {
      const known = new Set(before.map(({ id }) => id));
      rows.value = [...before, ...page.items.filter(({ id }) => !known.has(id)).map(rowOf)];
      next.value = page.next;
    });
    void readReasons(false);
  };

  const load = async (): Promise<void> => {
    const page = await read(after || undefined);
    if (page === undefined) return;
    freshIds.clear();
    fresh.value = 0;
    show(page, []);
  };

  const more = async (): Promise<void> => {
    if (next.peek() === undefined || loading.peek() || rows.peek().length >= MOST_ROWS) return;
    const page = await read(next.peek());
    if (page !== undefined) show(page, rows.peek());
  };

  const take = (event: LiveEvent): void => {
    if (event.kind === "reset" || event.kind === "resumed") return void load();
    if (event.kind !== "run") return;
    const change = event.data as Partial<RunSummary> & { readonly id: string; readonly deleted?: boolean };
    const row = byId.get(change.id);
    const isShown = row !== undefined && rows.peek().includes(row);
    if (change.deleted === true) {
      if (isShown) row.gone.value = true;
      return;
    }
    const summary = change as RunSummary;
    if (isShown) {
      row.summary.value = summary;
      row.gone.value = !matches(filter, summary);
      changed.add(summary.id);
      return;
    }
    if (after !== "" || filter.parent !== "" || !matches(filter, summary) || freshIds.has(summary.id)) return;
    const last = rows.peek().at(-1);
    // Older than the last row of a list that continues: it is on a later page.
    if (next.peek() !== undefined && last !== undefined && summary.createdAt < last.summary.peek().createdAt) return;
    freshIds.add(summary.id);
    fresh.value = freshIds.size;
    // An empty list has no place that could jump.
    if (rows.peek().length === 0) void load();
  };

  return { filter, rows, next, loading, problem, fresh, load, more, take, readReasons };
}

function isSame(before: RunNow | undefined, after: RunNow): boolean {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(after);
}
