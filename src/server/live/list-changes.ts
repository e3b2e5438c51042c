// ListChanges: what changed in the lists that are not runs: open promises, queues, workers. Each list is bounded, read as a whole and
// compared with how it was.

import type { PromiseChange, QueueChange, WorkerChange } from "../../contract/index.ts";
import {
  readWorkerActivity,
  type OpenPromise,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../../kernel/index.ts";
import type { ChangeEvent } from "./change-event.ts";

export interface ListChangesHost {
  readonly store: Store;
  readonly emit: (change: ChangeEvent) => void;
  /** The rows of runs, read if they are not known. */
  readonly findRuns: (runs: readonly RunNumber[]) => Promise<ReadonlyMap<RunNumber, RunRecord>>;
}

const MAX_PROMISES = 500;
const MAX_COUNT = 10_000;

/** One row of each list, by its key, as it was last read. */
type Rows<T> = Map<string, { readonly row: T; readonly text: string }>;

export class ListChanges {
  readonly #host: ListChangesHost;
  readonly #queues: Rows<QueueChange> = new Map();
  readonly #workers: Rows<WorkerChange> = new Map();
  #promises = new Map<string, { readonly promise: OpenPromise; readonly record: RunRecord | undefined }>();

  constructor(host: ListChangesHost) {
    this.#host = host;
  }

  async readQueues(): Promise<void> {
    const states = await this.#host.store.listQueues(MAX_COUNT);
    const rows = states.map(({ name, paused, ready, leased, delayed }) => ({ name, paused, ready, leased, delayed }));
    for (const data of changedRows(this.#queues, rows, ({ name }) => name).changed)
      this.#host.emit({ event: "queue", data });
  }

  async readWorkers(): Promise<void> {
    const { store, emit } = this.#host;
    const now = store.now();
    const rows = (await store.listWorkers()).map(({ worker, name, until, activity }): WorkerChange => {
      const read = readWorkerActivity(activity);
      const alive = until > now;
      return {
        worker,
        name,
        alive,
        draining: read?.isDraining ?? false,
        ...(read !== undefined && { running: read.running, runsHeld: read.runsHeld }),
      };
    });
    const { changed, gone } = changedRows(this.#workers, rows, ({ worker }) => String(worker));
    for (const data of changed) emit({ event: "worker", data });
    for (const row of gone) emit({ event: "worker", data: { ...row, alive: false, gone: true } });
  }

  async readPromises(): Promise<void> {
    const { store, findRuns } = this.#host;
    const { promises } = await store.listPromises({ limit: MAX_PROMISES });
    const before = this.#promises;
    const opened = promises.filter((promise) => !before.has(cursorOf(promise)));
    const runs =
      opened.length === 0
        ? new Map<RunNumber, RunRecord>()
        : await findRuns([...new Set(opened.map(({ run }) => run))]);
    const after = new Map(
      promises.map((promise) => {
        const cursor = cursorOf(promise);
        return [cursor, before.get(cursor) ?? { promise, record: runs.get(promise.run) }] as const;
      }),
    );
    this.#promises = after;
    for (const [cursor, { promise, record }] of before)
      if (!after.has(cursor)) this.#emitPromise("closed", promise, record, after.size);
    for (const promise of opened) this.#emitPromise("opened", promise, runs.get(promise.run), after.size);
  }

  #emitPromise(state: PromiseChange["state"], promise: OpenPromise, record: RunRecord | undefined, open: number): void {
    const { runId, definition, name, key, at } = promise;
    this.#host.emit({
      event: "promise",
      data: {
        run: runId,
        definition,
        name,
        ...(key !== undefined && { key }),
        state,
        createdAt: new Date(at).toISOString(),
        cursor: cursorOf(promise),
        open,
      },
      run: { id: runId, definition, tags: record?.tags ?? [], statuses: record === undefined ? [] : [record.status] },
    });
  }
}

function cursorOf({ run, command }: OpenPromise): string {
  return `${run}:${command}`;
}

function changedRows<T>(
  known: Rows<T>,
  rows: readonly T[],
  keyOf: (row: T) => string,
): { readonly changed: readonly T[]; readonly gone: readonly T[] } {
  const changed: T[] = [];
  const keys = new Set<string>();
  for (const row of rows) {
    const [key, text] = [keyOf(row), JSON.stringify(row)];
    keys.add(key);
    if (known.get(key)?.text === text) continue;
    known.set(key, { row, text });
    changed.push(row);
  }
  const gone = [...known].filter(([key]) => !keys.has(key));
  for (const [key] of gone) known.delete(key);
  return { changed, gone: gone.map(([, { row }]) => row) };
}
