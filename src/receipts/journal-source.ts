// Journal source: where the entries of a run are read from.

import type { Entry, RunRecord, Store } from "../kernel/index.ts";
import type { PlainEntry } from "./journal-tree.ts";

/** A journal that can be read more than once, in order, page by page. Every reading has the same entries. */
export interface JournalSource<E extends PlainEntry = PlainEntry> {
  pages(): AsyncIterable<readonly E[]>;
}

/** How many entries a page has. Payloads differ in size a thousandfold, so the size of one page decides that of the next. */
const FIRST_PAGE = 64;
const MAX_PAGE = 1_000;
/** In characters. */
const PAGE_LENGTH = 2_000_000;

/** The journal of a run in a store, up to the head of its row: a live run may append more meanwhile. */
export function storeJournal(
  store: Pick<Store, "readJournal">,
  { run, head }: Pick<RunRecord, "run" | "head">,
): JournalSource<Entry> {
  return {
    async *pages() {
      let limit = FIRST_PAGE;
      for (let after = 0; after < head;) {
        const page = await store.readJournal(run, after, Math.min(limit, head - after));
        if (page.length === 0) return;
        after = page.at(-1)!.seq;
        const length = page.reduce((sum, { data }) => sum + data.length, 0);
        limit = Math.max(1, Math.min(MAX_PAGE, Math.floor((PAGE_LENGTH / length) * page.length)));
        yield page;
      }
    },
  };
}

export function listJournal<E extends PlainEntry>(entries: readonly E[]): JournalSource<E> {
  return {
    async *pages() {
      yield entries;
    },
  };
}
