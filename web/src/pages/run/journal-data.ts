// The journal of a run, page by page; and the entries of one step.

import { useEffect, useMemo } from "preact/hooks";
import { signal, type Signal } from "@preact/signals";
import type { JournalEntryBody, RunDetail } from "../../../../src/contract/run.ts";
import { at, get, Problem } from "../../api.ts";

interface Page {
  readonly items: readonly JournalEntryBody[];
  readonly next?: string;
}

const PAGE = 500;
/** Searching more entries than this for one step takes too long; the tab Journal has them. */
const MOST_PAGES = 10;

export interface JournalPages {
  readonly entries: Signal<readonly JournalEntryBody[]>;
  readonly next: Signal<string | undefined>;
  readonly loading: Signal<boolean>;
  readonly problem: Signal<Problem | undefined>;
  readonly more: () => Promise<void>;
}

/** The entries in order. New entries are added when the run has more of them than before. */
export function useJournal(run: RunDetail): JournalPages {
  const pages = useMemo(() => createJournal(run.id), [run.id, run.generation]);
  useEffect(() => {
    void pages.follow(run.entries);
  }, [pages, run.entries]);
  return pages;
}

function createJournal(id: string): JournalPages & { readonly follow: (count: number) => Promise<void> } {
  const entries = signal<readonly JournalEntryBody[]>([]);
  const next = signal<string | undefined>(undefined);
  const loading = signal(false);
  const problem = signal<Problem | undefined>(undefined);
  const read = async (after: string | undefined): Promise<void> => {
    if (loading.peek()) return;
    loading.value = true;
    try {
      const page = await get<Page>(at`/v1/runs/${id}/journal`, { query: { limit: PAGE, after } });
      const known = new Set(entries.peek().map(({ seq }) => seq));
      entries.value = [...entries.peek(), ...page.items.filter(({ seq }) => !known.has(seq))];
      next.value = page.next;
      problem.value = undefined;
    } catch (thrown) {
      if (thrown instanceof Problem && !thrown.isOutage) problem.value = thrown;
    } finally {
      loading.value = false;
    }
  };
  /** The cursor behind the last entry: the last page may have grown. */
  let lastCursor: string | undefined;
  return {
    entries,
    next,
    loading,
    problem,
    more: async () => {
      if (next.peek() === undefined) return;
      lastCursor = next.peek();
      await read(lastCursor);
    },
    follow: async (count) => {
      const last = entries.peek().at(-1)?.seq ?? 0;
      if (last >= count || (next.peek() !== undefined && last > 0)) return;
      await read(lastCursor);
    },
  };
}

/** The entries of one step, and whether all were searched. */
export async function readStepEntries(
  id: string,
  command: string,
  signal_: AbortSignal,
): Promise<{ readonly entries: readonly JournalEntryBody[]; readonly complete: boolean }> {
  const found: JournalEntryBody[] = [];
  let after: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { items, next } = await get<Page>(at`/v1/runs/${id}/journal`, {
      query: { limit: PAGE, after },
      signal: signal_,
    });
    found.push(
      ...items.filter((entry) => entry.command === command || entry.command?.startsWith(`${command}/`) === true),
    );
    if (next === undefined) return { entries: found, complete: true };
    after = next;
  }
  return { entries: found, complete: false };
}
