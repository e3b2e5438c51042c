// Kept folds: what was read of a journal, kept for the next read of a longer one.
//
// kept-folds.K1. The folds of the runs that were read last are kept: a page that follows a long run reads its new entries only. A fold is
//   used again only if the store still has its last entry, unchanged.
// kept-folds.K2. A fold that has read a retry it did not know is made again with it, and reads the journal from its start.

import { eachEntry } from "../explain/index.ts";
import type { Entry, RunNumber, RunRecord, Store } from "../kernel/index.ts";

export interface Fold {
  read(entry: Entry): void;
  /** kept-folds.K2 */
  readonly isStale: boolean;
}

interface Kept<F extends Fold> {
  readonly fold: F;
  seq: number;
  mark: number;
}

const MAX_FOLDS = 16;

export class KeptFolds<F extends Fold> {
  readonly #make: (store: Store, record: RunRecord, before: F | undefined) => F | Promise<F>;
  readonly #stores = new WeakMap<Store, Map<RunNumber, Kept<F>>>();

  /** `make`: a fold without entries; `before` is the stale one. */
  constructor(make: (store: Store, record: RunRecord, before: F | undefined) => F | Promise<F>) {
    this.#make = make;
  }

  /** The fold of the run up to its head. */
  async read(store: Store, record: RunRecord): Promise<F> {
    const folds = this.#stores.get(store) ?? new Map<RunNumber, Kept<F>>();
    this.#stores.set(store, folds);
    const known = folds.get(record.run);
    folds.delete(record.run);
    let kept =
      known !== undefined && (await isCurrent(store, record, known)) ? known : await this.#begin(store, record);
    await readOn(store, record, kept);
    while (kept.fold.isStale) {
      kept = await this.#begin(store, record, kept.fold);
      await readOn(store, record, kept);
    }
    folds.set(record.run, kept);
    for (const oldest of folds.keys()) if (folds.size > MAX_FOLDS) folds.delete(oldest);
    return kept.fold;
  }

  async #begin(store: Store, record: RunRecord, before?: F): Promise<Kept<F>> {
    return { fold: await this.#make(store, record, before), seq: 0, mark: 0 };
  }
}

/** kept-folds.K1 */
async function isCurrent<F extends Fold>(store: Store, { run, head }: RunRecord, kept: Kept<F>): Promise<boolean> {
  if (kept.seq === 0 || kept.seq > head) return false;
  const [last] = await store.readJournal(run, kept.seq - 1, 1);
  return last?.mark === kept.mark;
}

async function readOn<F extends Fold>(store: Store, record: RunRecord, kept: Kept<F>): Promise<void> {
  await eachEntry(store, record, kept.seq, record.head, (entry) => {
    kept.fold.read(entry);
    kept.seq = entry.seq;
    kept.mark = entry.mark;
  });
}
